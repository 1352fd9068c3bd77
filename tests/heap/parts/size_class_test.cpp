// What the arithmetic of size classes promises, for every size, distance and alignment.
#include "heap/size_class.hpp"

#include <gtest/gtest.h>

namespace blockyard::heap {
namespace {

TEST(SizeClasses, every_size_has_the_least_class_that_holds_it_and_wastes_a_quarter_at_most) {
  for (std::size_t size = 1; size <= small_limit; ++size) {
    const unsigned index = class_of(size);
    ASSERT_GE(class_bytes(index), size);
    ASSERT_TRUE(index == 0 || class_bytes(index - 1) < size) << size;
    ASSERT_TRUE(size <= 128 || (class_bytes(index) - size) * 4 <= size) << size;
  }
}

TEST(SizeClasses, an_inverse_tells_the_multiples_of_its_class) {
  for (unsigned index = 0; index < class_count; ++index) {
    for (std::uint32_t distance = 0; distance < 1u << 17; ++distance) {
      ASSERT_EQ(is_multiple(distance, class_inverse(index)), distance % class_bytes(index) == 0) << distance;
    }
  }
}

TEST(SizeClasses, the_least_class_that_holds_a_multiple_of_an_alignment_is_one_itself) {
  for (std::size_t alignment = block_alignment; alignment <= small_limit; alignment *= 2) {
    for (std::size_t size = alignment; size <= small_limit; size += alignment) {
      ASSERT_EQ(class_bytes(class_of(size)) % alignment, 0u) << size;
    }
  }
}

}  // namespace
}  // namespace blockyard::heap
