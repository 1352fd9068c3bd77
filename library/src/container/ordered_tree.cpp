// The tree that all ordered maps and sets over near links share.
#include "blockyard/detail/ordered_tree.hpp"

namespace blockyard::container {

template struct OrderedTree<NearShape>;

}  // namespace blockyard::container
