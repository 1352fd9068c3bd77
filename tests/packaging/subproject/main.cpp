#include <blockyard/heap.h>
#include <blockyard/allocator.hpp>
#include <blockyard/block_resource.hpp>
#include <blockyard/hash_map.hpp>
#include <blockyard/lifetime.hpp>
#include <blockyard/list.hpp>
#include <blockyard/rb_map.hpp>
#include <blockyard/rb_set.hpp>

#include <iostream>
#include <new>

int main() {
  auto* number = new (by_malloc(sizeof(int))) int(42);
  std::cout << *number << '\n';
  by_free(number);
}
