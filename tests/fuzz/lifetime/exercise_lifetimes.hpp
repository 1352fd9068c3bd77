// Differential exercise: a sequence of bytes drives all lifetimes and a simple model side by side. Every block is
// filled with a pattern of its own; a block that overlaps another, or goes too early, is seen by its pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "blockyard/lifetime.hpp"
#include "blockyard/rewindable.hpp"
#include "fuzz/exercise.hpp"

namespace lifetime_exercise {

using blockyard::fuzz::Bytes;

struct Block {
  unsigned char* begin;
  std::size_t size;
  unsigned char pattern;
  unsigned long born;  ///< the how-manieth block it is
};

class Exercise {
 public:
  explicit Exercise(std::span<const std::uint8_t> input) : bytes_(input) {}

  /// nullptr, or a sentence that says what went wrong.
  const char* run() {
    while (!bytes_.is_done() && fault_ == nullptr) {
      step();
    }
    check_all();
    for (Block& block : jobs_) {
      blockyard::deallocate(block.begin, blockyard::Lifetime::temp_job);
    }
    by_thread_end_frame();
    return fault_;
  }

 private:
  // Mostly small, sometimes beyond a region or a chunk.
  std::size_t size() {
    const std::size_t kind = bytes_.byte() % 16;
    const std::size_t value = bytes_.byte();
    return kind == 15 ? value * 997 : kind >= 12 ? value * 61 : value;
  }
  std::size_t alignment() { return std::size_t{1} << (bytes_.byte() % 15); }

  Block fill(void* block, std::size_t size) {
    const Block made{static_cast<unsigned char*>(block), size, static_cast<unsigned char>(births_ * 7 + 1), ++births_};
    std::memset(made.begin, made.pattern, size);
    return made;
  }

  void expect(bool holds, const char* sentence) {
    if (!holds && fault_ == nullptr) {
      fault_ = sentence;
    }
  }

  void check(const Block& block) {
    for (std::size_t i = 0; i < block.size; ++i) {
      if (block.begin[i] != block.pattern) {
        expect(false, "a live block lost its contents");
        return;
      }
    }
  }
  void check_all() {
    for (const auto* blocks : {&temps_, &jobs_, &arena_blocks_}) {
      for (const Block& block : *blocks) {
        check(block);
      }
    }
  }

  void add(std::vector<Block>& blocks, void* block, std::size_t size, std::size_t alignment) {
    expect(block != nullptr, "an allocation failed");
    if (block != nullptr) {
      expect(reinterpret_cast<std::uintptr_t>(block) % alignment == 0, "a block is not aligned");
      blocks.push_back(fill(block, size));
    }
  }

  void remove(std::vector<Block>& blocks, blockyard::Lifetime lifetime) {
    if (!blocks.empty()) {
      const std::size_t which = bytes_.byte() % blocks.size();
      const Block& block = blocks[which];
      check(block);
      if (lifetime == blockyard::Lifetime::temp && bytes_.byte() % 2 == 0) {
        blockyard::temp_deallocate(block.begin, block.size);
      } else {
        blockyard::deallocate(block.begin, lifetime);
      }
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  void resize(std::vector<Block>& blocks, blockyard::Lifetime lifetime) {
    if (blocks.empty()) {
      return;
    }
    Block& block = blocks[bytes_.byte() % blocks.size()];
    const std::size_t wanted = size();
    const std::size_t aligned = alignment();
    auto* const moved =
        static_cast<unsigned char*>(blockyard::reallocate(block.begin, block.size, wanted, aligned, lifetime));
    expect(moved != nullptr && reinterpret_cast<std::uintptr_t>(moved) % aligned == 0,
           "a reallocation failed or is not aligned");
    if (moved != nullptr) {
      check({moved, wanted < block.size ? wanted : block.size, block.pattern, block.born});
      block = fill(moved, wanted);
    }
  }

  void step() {
    using blockyard::Lifetime;
    switch (bytes_.byte() % 16) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const std::size_t wanted = size();
        const std::size_t aligned = alignment();
        add(temps_, blockyard::allocate(wanted, aligned, Lifetime::temp), wanted, aligned);
        break;
      }
      case 4:
      case 5:
      case 6: {
        const std::size_t wanted = size();
        const std::size_t aligned = alignment();
        add(jobs_, blockyard::allocate(wanted, aligned, Lifetime::temp_job), wanted, aligned);
        break;
      }
      case 7:
        remove(temps_, Lifetime::temp);
        break;
      case 8:
      case 9:
        remove(jobs_, Lifetime::temp_job);
        break;
      case 10:
        bytes_.byte() % 2 == 0 ? scopes_.push_back({by_temp_mark_now(), births_}) : use_cursor();
        break;
      case 11:
        if (!scopes_.empty()) {
          rewind();
        }
        break;
      case 12:
        resize(temps_, Lifetime::temp);
        scopes_.clear();
        break;
      case 13:
        resize(jobs_, Lifetime::temp_job);
        break;
      case 14: {
        const std::size_t wanted = size();
        const std::size_t aligned = alignment();
        add(arena_blocks_, arena_.try_allocate(wanted, aligned), wanted, aligned);
        break;
      }
      default:
        end_something();
        break;
    }
  }

  // Three of them, opened and closed in any order.
  void use_cursor() {
    std::optional<blockyard::temp_cursor<8>>& cursor = cursors_[bytes_.byte() % 3];
    const std::uint8_t what = bytes_.byte();
    if (!cursor) {
      cursor.emplace();
    } else if (what % 4 == 0) {
      cursor.reset();
      return;
    }
    for (unsigned i = 0; i < what % 8u; ++i) {
      const std::size_t wanted = size();
      const std::size_t aligned = alignment();
      add(temps_, cursor->allocate(wanted, aligned), wanted, aligned);
    }
    if (what % 8 == 7 && !temps_.empty()) {
      const Block newest = temps_.back();
      cursor->deallocate(newest.begin, newest.size);
      temps_.pop_back();
    }
  }

  struct Scope {
    by_temp_mark mark;
    unsigned long born;  ///< blocks born later go with it
  };

  void rewind() {
    const Scope scope = scopes_.back();
    scopes_.pop_back();
    by_temp_rewind(scope.mark);
    std::erase_if(temps_, [&](const Block& block) { return block.born > scope.born; });
  }

  void end_something() {
    switch (bytes_.byte() % 3) {
      case 0:
        check_all();
        by_thread_end_frame();
        temps_.clear();
        scopes_.clear();
        break;
      case 1:
        check_all();
        arena_.rewind();
        arena_blocks_.clear();
        break;
      default:
        by_frame_end(0);
        temps_.clear();
        scopes_.clear();
        break;
    }
  }

  Bytes bytes_;
  const char* fault_ = nullptr;
  unsigned long births_ = 0;
  std::vector<Block> temps_;
  std::vector<Block> jobs_;
  std::vector<Block> arena_blocks_;
  std::vector<Scope> scopes_;
  std::optional<blockyard::temp_cursor<8>> cursors_[3];
  blockyard::rewindable arena_{4096};
};

}  // namespace lifetime_exercise
