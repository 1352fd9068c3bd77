// Typed helpers and memory resources, for every lifetime.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "blockyard/lifetime.hpp"

namespace {

using namespace blockyard;

class EachLifetime : public testing::TestWithParam<Lifetime> {};

struct Counted {
  explicit Counted(int wanted) : value(wanted) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int value;
  static inline int alive = 0;
};

struct Throws {
  Throws() { throw std::runtime_error("no"); }
};

TEST_P(EachLifetime, make_constructs_and_destroy_destroys) {
  Counted* const object = make<Counted>(GetParam(), 7);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(object->value, 7);
  EXPECT_EQ(Counted::alive, 1);
  destroy(object, GetParam());
  EXPECT_EQ(Counted::alive, 0);
}

TEST_P(EachLifetime, what_a_constructor_throws_passes_through) {
  EXPECT_THROW(static_cast<void>(make<Throws>(GetParam())), std::runtime_error);
}

TEST_P(EachLifetime, a_span_has_room_for_its_elements) {
  const std::span<double> numbers = make_span<double>(1000, GetParam());
  ASSERT_EQ(numbers.size(), 1000u);
  for (double& number : numbers) {
    number = 1.5;
  }
  EXPECT_EQ(numbers[999], 1.5);
  deallocate(numbers.data(), GetParam());
}

TEST_P(EachLifetime, a_span_too_large_is_empty) { EXPECT_TRUE(make_span<double>(SIZE_MAX / 4, GetParam()).empty()); }

TEST_P(EachLifetime, reallocate_keeps_the_contents_and_the_alignment) {
  char* block = static_cast<char*>(allocate(6, 64, GetParam()));
  std::strcpy(block, "hello");
  for (const std::size_t size : {std::size_t{100}, std::size_t{100'000}, std::size_t{6}}) {
    char* const moved = static_cast<char*>(reallocate(block, 6, size, 64, GetParam()));
    ASSERT_NE(moved, nullptr);
    EXPECT_STREQ(moved, "hello");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(moved) % 64, 0u);
    block = moved;
  }
  deallocate(block, GetParam());
}

TEST_P(EachLifetime, a_block_of_size_zero_that_grows_shares_its_bytes_with_no_other) {
  for (std::size_t alignment = 1; alignment <= 64; alignment *= 2) {
    std::vector<unsigned char*> blocks;
    for (int i = 0; i < 16; ++i) {
      blocks.push_back(static_cast<unsigned char*>(allocate(0, alignment, GetParam())));
    }
    for (unsigned char*& block : blocks) {
      block = static_cast<unsigned char*>(reallocate(block, 0, 1, alignment, GetParam()));
      *block = 0xff;
    }
    for (unsigned char* const block : blocks) {
      EXPECT_EQ(*block, 0xff);
      deallocate(block, GetParam());
    }
  }
}

TEST_P(EachLifetime, reallocate_of_nothing_allocates) {
  void* const block = reallocate(nullptr, 0, 16, 16, GetParam());
  EXPECT_NE(block, nullptr);
  deallocate(block, GetParam());
  deallocate(nullptr, GetParam());
}

TEST_P(EachLifetime, every_power_of_two_up_to_16_kib_is_an_alignment_for_small_and_large_blocks) {
  for (std::size_t alignment = 1; alignment <= max_alignment; alignment *= 2) {
    for (const std::size_t size : {1u, 3u, 16'384u, 16'385u, 300'000u}) {
      void* const before = allocate(1, 1, GetParam());  // or each block of temp begins where the first did
      auto* const block = static_cast<unsigned char*>(allocate(size, alignment, GetParam()));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u) << alignment;
      block[0] = block[size - 1] = 1;
      deallocate(block, GetParam());
      deallocate(before, GetParam());
    }
  }
}

TEST_P(EachLifetime, an_alignment_that_is_none_fails_with_einval) {
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{48}, 2 * max_alignment}) {
    errno = 0;
    EXPECT_EQ(allocate(16, alignment, GetParam()), nullptr) << alignment;
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_P(EachLifetime, a_size_that_cannot_be_had_fails_with_enomem) {
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 64, SIZE_MAX - 4096, SIZE_MAX / 2}) {
    errno = 0;
    EXPECT_EQ(allocate(size, 16, GetParam()), nullptr) << size;
    EXPECT_EQ(errno, ENOMEM);
  }
}

TEST_P(EachLifetime, containers_allocate_from_its_resource) {
  std::pmr::memory_resource* const resource = GetParam() == Lifetime::temp       ? temp_resource()
                                              : GetParam() == Lifetime::temp_job ? temp_job_resource()
                                                                                 : persistent_resource();
  std::pmr::vector<std::pmr::string> names(resource);
  for (int i = 0; i < 500; ++i) {
    names.emplace_back("a name that is too long for the string itself");
  }
  EXPECT_EQ(names[499], "a name that is too long for the string itself");
  EXPECT_THROW(static_cast<void>(resource->allocate(SIZE_MAX - 64)), std::bad_alloc);
}

INSTANTIATE_TEST_SUITE_P(All, EachLifetime, testing::Values(Lifetime::temp, Lifetime::temp_job, Lifetime::persistent));

TEST(Lifetimes, one_that_is_none_fails_with_einval) {
  errno = 0;
  EXPECT_EQ(by_lifetime_alloc(16, 16, static_cast<by_lifetime>(3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

struct AllocatesItself {
  explicit AllocatesItself(int wanted) : number(wanted) {}
  static void* operator new(std::size_t size) { return ::operator new(size); }
  static void operator delete(void* object) { ::operator delete(object); }
  int number;
};

TEST(Lifetimes, make_constructs_what_has_an_operator_new_of_its_own) {
  auto* const object = make<AllocatesItself>(Lifetime::temp_job, 7);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(object->number, 7);
  destroy(object, Lifetime::temp_job);
}

TEST(Lifetimes, a_temp_span_holds_its_elements_for_the_frame) {
  const temp_span<int> numbers(100);
  numbers[99] = 5;
  EXPECT_EQ(numbers.size(), 100u);
  EXPECT_EQ(numbers.data()[99], 5);
  by_thread_end_frame();
}

}  // namespace
