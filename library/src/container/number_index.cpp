// The index that all maps of numbers over static and direct blocks share.
#include "blockyard/detail/number_index_impl.hpp"

namespace blockyard::container {

template class NumberIndex<NearLink<void>>;

}  // namespace blockyard::container
