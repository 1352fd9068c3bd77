// The tree that all ordered maps and sets over static and direct blocks share.
#include "blockyard/detail/ordered_tree_impl.hpp"

namespace blockyard::container {

template struct OrderedTree<NearShape>;

}  // namespace blockyard::container
