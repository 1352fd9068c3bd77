// Random operations against a shadow model that knows every live block's bounds and contents.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "blockyard/heap.h"

namespace {

struct Shadow {
  std::size_t size;
  unsigned char fill;
};

class Model {
 public:
  explicit Model(unsigned seed) : engine_(seed) {}

  void step() {
    switch (random_() % 10) {
      case 0:
      case 1:
      case 2:
      case 3:
        add(by_malloc(size_), size_);
        break;
      case 4:
        add(aligned(), size_);
        break;
      case 5:
        resize();
        break;
      default:
        remove();
        break;
    }
    size_ = next_size();
  }

  void clear() {
    while (!live_.empty()) {
      remove();
    }
  }

 private:
  unsigned random_() { return static_cast<unsigned>(engine_()); }

  std::size_t next_size() {
    const unsigned pick = random_() % 100;
    return pick < 80   ? random_() % 600
           : pick < 95 ? random_() % 10'000
           : pick < 99 ? random_() % 200'000
                       : random_() % 4'000'000;
  }

  void* aligned() {
    const std::size_t alignment = std::size_t{1} << (random_() % 15);
    void* const block = by_aligned_alloc(alignment, size_);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    return block;
  }

  void add(void* pointer, std::size_t size) {
    auto* const block = static_cast<unsigned char*>(pointer);
    ASSERT_NE(block, nullptr);
    const auto after = live_.lower_bound(block);
    ASSERT_TRUE(after == live_.end() || block + size <= after->first) << "two live blocks overlap";
    ASSERT_TRUE(after == live_.begin() || std::prev(after)->first + std::prev(after)->second.size <= block)
        << "two live blocks overlap";
    const auto fill = static_cast<unsigned char>(random_());
    std::memset(block, fill, size);
    live_[block] = {size, fill};
  }

  void verify(const unsigned char* block, const Shadow& shadow, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(block[i], shadow.fill) << "a live block changed";
    }
  }

  std::map<unsigned char*, Shadow>::iterator pick() {
    auto found = live_.lower_bound(live_.begin()->first + random_() % (std::size_t{1} << 26));
    return found == live_.end() ? live_.begin() : found;
  }

  void resize() {
    if (live_.empty()) {
      return;
    }
    const auto found = pick();
    const Shadow shadow = found->second;
    unsigned char* const before = found->first;
    verify(before, shadow, shadow.size);
    live_.erase(found);
    auto* const after = static_cast<unsigned char*>(by_realloc(before, size_));
    ASSERT_NE(after, nullptr);
    verify(after, shadow, std::min(shadow.size, size_));
    add(after, size_);
  }

  void remove() {
    if (live_.empty()) {
      return;
    }
    const auto found = pick();
    verify(found->first, found->second, found->second.size);
    by_free(found->first);
    live_.erase(found);
  }

  std::mt19937 engine_;
  std::size_t size_ = 0;
  std::map<unsigned char*, Shadow> live_;
};

TEST(HeapShadowModel, random_operations_never_overlap_nor_change_a_live_block) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    Model model(seed);
    for (int step = 0; step < 30'000 && !testing::Test::HasFatalFailure(); ++step) {
      model.step();
      if (step % 5'000 == 0) {
        ASSERT_EQ(by_heap_check(), nullptr) << "seed " << seed << ", step " << step;
      }
    }
    model.clear();
    ASSERT_EQ(by_heap_check(), nullptr);
  }
}

}  // namespace
