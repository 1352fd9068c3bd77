#define CALL_TREE call_tree_with_frame_pointers
#include "call_tree.inc"
