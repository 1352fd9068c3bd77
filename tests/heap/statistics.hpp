// The heap's statistics as a value.
#pragma once

#include "blockyard/heap.h"

inline by_heap_statistics statistics() {
  by_heap_statistics values{};
  by_heap_get_statistics(&values);
  return values;
}
