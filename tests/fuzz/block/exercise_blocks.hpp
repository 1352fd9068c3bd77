// BlockAllocator under any sequence of calls: blocks never overlap, keep what was written, and every count stays right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "blockyard/block_allocator.hpp"
#include "fuzz/exercise.hpp"

namespace blockyard::fuzz {

class BlocksExercise {
 public:
  static constexpr unsigned steps_a_check = 64;
  BlocksExercise(std::size_t size, std::size_t alignment)
      : size_(size), alignment_(alignment), blocks_(size, alignment) {}

  void step(Bytes& bytes) {
    const std::uint8_t choice = bytes.byte() % 16;
    const std::uint32_t number = bytes.below(3000);
    switch (choice) {
      case 0:
        for (std::uint32_t i = 0; i < number; ++i) {
          take();
        }
        break;
      case 1:
        for (std::uint32_t i = 0; i < number && !live_.empty(); ++i) {
          give(number * (i + 1) % live_.size());
        }
        break;
      case 2:
        if (bytes.byte() % 16 == 0) {
          blocks_.reset();
          live_.clear();
        }
        break;
      case 3:
        if (bytes.byte() % 8 == 0) {
          blocks_.trim();
        }
        break;
      case 4:
        give_chain(number % 200);
        break;
      case 5:
      case 6:
      case 7:
        if (!live_.empty()) {
          give(number % live_.size());
        }
        break;
      default:
        take();
        break;
    }
  }

  void check() {
    REQUIRE(blocks_.invariants_hold());
    const by_block_statistics statistics = blocks_.statistics();
    REQUIRE(statistics.live_blocks == live_.size());
    REQUIRE(statistics.peak_blocks >= live_.size());
    REQUIRE(statistics.held_bytes >= statistics.live_bytes && statistics.free_page_bytes <= statistics.held_bytes);
  }

 private:
  struct Live {
    unsigned char* block;
    unsigned char mark;
  };

  void take() {
    auto* const block = static_cast<unsigned char*>(blocks_.allocate());
    REQUIRE(block != nullptr && reinterpret_cast<std::uintptr_t>(block) % alignment_ == 0);
    const auto mark = static_cast<unsigned char>(++marks_);
    std::memset(block, mark, size_);
    live_.push_back({block, mark});
  }

  void give(std::size_t at) {
    const Live live = live_[at];
    // Whoever else was given these bytes has left another mark.
    REQUIRE(live.block[0] == live.mark && live.block[size_ - 1] == live.mark);
    blocks_.free(live.block);
    live_[at] = live_.back();
    live_.pop_back();
  }

  void give_chain(std::size_t count) {
    if (count == 0 || live_.size() < count) {
      return;
    }
    const std::size_t begin = live_.size() - count;
    for (std::size_t i = begin; i < live_.size(); ++i) {
      REQUIRE(live_[i].block[size_ - 1] == live_[i].mark);
      void* const next = i + 1 < live_.size() ? live_[i + 1].block : nullptr;
      block::set_chain_next(live_[i].block, next, blocks_.block_bytes());
    }
    blocks_.free_chain(live_[begin].block, live_.back().block, count);
    live_.resize(begin);
  }

  std::size_t size_;
  std::size_t alignment_;
  BlockAllocator blocks_;
  std::vector<Live> live_;
  unsigned marks_ = 0;
};

inline void exercise_blocks(std::span<const std::uint8_t> input) {
  Bytes bytes(input);
  struct Shape {
    std::size_t size;
    std::size_t alignment;
  };
  constexpr Shape shapes[] = {{1, 1}, {8, 8}, {24, 8}, {24, 32}, {100, 4}, {1000, 8}, {6000, 4096}, {70000, 16}};
  const Shape shape = shapes[bytes.byte() % std::size(shapes)];
  run(BlocksExercise(shape.size, shape.alignment), bytes);
}

}  // namespace blockyard::fuzz
