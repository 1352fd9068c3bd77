#include <blockyard/blockyard.h>
#include <stdio.h>

int main(void) {
  void* block = by_malloc(100);
  if (block == NULL) return 1;
  by_free(block);
  puts("a block of 100 bytes from the package");
  return 0;
}
