// The slot array that all hash maps over near links share.
#include "blockyard/detail/hash_slots_impl.hpp"

namespace blockyard::container {

template class HashSlots<NearLink<void>>;

}  // namespace blockyard::container
