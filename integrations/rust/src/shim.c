// What of the headers is inline, or looks for a recorder: the crate has no other way to a symbol that may be missing.
#include "blockyard/heap.h"
#include "blockyard/tag.h"

_Static_assert(sizeof(by_heap_statistics) == 15 * 8, "src/heap.rs has other fields");

void by_rust_tag_push(const char* name) { by_tag_push(name); }
void by_rust_tag_pop(void) { by_tag_pop(); }
uint32_t by_rust_tag_current(void) { return by_tag_current().number; }
void by_rust_tag_enter(uint32_t number) {
  const by_tag_path path = {number};
  by_tag_enter(path);
}
