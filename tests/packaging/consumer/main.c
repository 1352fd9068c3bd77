#include <blockyard/heap.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  char* block = by_malloc(100);
  if (block == NULL) return 1;
  strcpy(block, "a block of 100 bytes");
  block = by_realloc(block, 5000);
  if (block == NULL || strcmp(block, "a block of 100 bytes") != 0) return 1;
  puts(block);
  by_free(block);
  return 0;
}
