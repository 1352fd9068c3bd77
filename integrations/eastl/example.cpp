// Two vectors grow as EASTL's do, one of what is aligned to a cache line.
#include <cstdint>

#include "blockyard_eastl.hpp"
#include "shape.h"

struct alignas(64) Line {
  int value;
};

int main() {
  ShapeVector<int, blockyard::eastl_allocator> numbers("numbers");
  ShapeVector<Line, blockyard::eastl_allocator> lines("lines");
  for (int i = 0; i < 10000; ++i) {
    numbers.push_back(i);
    lines.push_back({i});
  }
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(&lines[0]) % 64 == 0;
  return numbers[9999] == 9999 && lines[9999].value == 9999 && is_aligned ? 0 : 1;
}
