// The table that all hash maps over near links share.
#include "blockyard/detail/hash_table.hpp"

namespace blockyard::container {

template class HashTable<NearLink<void>>;

}  // namespace blockyard::container
