// The slot array that all maps over static and direct blocks share.
#include "blockyard/detail/hash_slots_impl.hpp"

namespace blockyard::container {

template class HashSlots<NearLink<void>>;

}  // namespace blockyard::container
