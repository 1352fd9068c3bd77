#define CALL_TREE call_tree_with
#include "call_tree.inc"
