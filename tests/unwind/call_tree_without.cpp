#define CALL_TREE call_tree_without_frame_pointers
#include "call_tree.inc"
