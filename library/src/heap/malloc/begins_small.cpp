// The preloaded library begins without a reserve. A program that links the heap chose it, and gets its reserve before
// main.
#include "heap/api/start.hpp"

namespace blockyard::heap {

constinit bool begins_small = true;

}  // namespace blockyard::heap
