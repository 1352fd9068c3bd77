#define CALL_TREE call_tree_without
#include "call_tree.inc"
