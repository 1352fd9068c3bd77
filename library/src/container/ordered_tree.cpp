// The tree that all ordered maps and sets over near links share.
#include "blockyard/detail/ordered_tree_impl.hpp"

namespace blockyard::container {

template struct OrderedTree<NearShape>;

}  // namespace blockyard::container
