// The index that all hash maps of number keys over near links share.
#include "blockyard/detail/number_index_impl.hpp"

namespace blockyard::container {

template class NumberIndex<NearLink<void>>;

}  // namespace blockyard::container
