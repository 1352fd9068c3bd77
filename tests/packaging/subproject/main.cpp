#include <blockyard/heap.h>

#include <iostream>
#include <new>

int main() {
  auto* number = new (by_malloc(sizeof(int))) int(42);
  std::cout << *number << '\n';
  by_free(number);
}
