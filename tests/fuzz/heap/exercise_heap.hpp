// Differential exercise: a sequence of bytes drives all of heap.h and a shadow model side by side. The model knows
// every live block's bounds, alignment and contents; the invariant walker checks the heap along the way.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <span>
#include <thread>

#include "blockyard/heap.h"
#include "fuzz/exercise.hpp"

namespace heap_exercise {

using blockyard::fuzz::Bytes;

class Exercise {
 public:
  /// So many bytes at each end of a block are filled and compared: a fuzzer should spend its time in the heap.
  explicit Exercise(std::span<const std::uint8_t> input, std::size_t most_filled = 4096)
      : bytes_(input), most_filled_(most_filled) {}

  /// nullptr, or a sentence that says what went wrong.
  const char* run() {
    for (unsigned steps = 0; !bytes_.is_done() && fault_ == nullptr; ++steps) {
      step();
      if (steps % 64 == 63) {
        check_heap();
      }
    }
    end();
    return fault_;
  }

 private:
  static constexpr std::size_t arenas = 3;

  struct Block {
    std::size_t size;
    unsigned char fill;
    std::size_t heap;  ///< 0: the thread's; else 1 + index of an arena
  };
  using Blocks = std::map<unsigned char*, Block>;

  void expect(bool holds, const char* sentence) {
    if (!holds && fault_ == nullptr) {
      fault_ = sentence;
    }
  }

  void check_heap() {
    if (const char* const broken = by_heap_check(); broken != nullptr) {
      expect(false, broken);
    }
  }

  // Mostly small; now and then around a border: of small blocks, of medium ones, of a page.
  std::size_t size() {
    const std::size_t kind = bytes_.byte();
    const std::size_t value = bytes_.byte();
    switch (kind % 16) {
      case 0:
        return 8192 - 4 + value % 8;
      case 1:
        return (std::size_t{1} << 20) - 4 + value % 8;
      case 2:
        return value * 16'001;
      case 3:
        return value * 997;
      case 4:
        return value * 4096;
      case 5:
      case 6:
      case 7:
        return value * 33;
      default:
        return value;
    }
  }
  std::size_t alignment() { return std::size_t{1} << (bytes_.byte() % 18); }

  void fill(unsigned char* block, const Block& known) const {
    const std::size_t part = std::min(known.size, most_filled_);
    std::memset(block, known.fill, part);
    std::memset(block + known.size - part, known.fill, part);
  }
  void check_contents(const unsigned char* block, std::size_t bytes, const Block& known) {
    const std::size_t part = std::min(known.size, most_filled_);
    const auto filled = [&](std::size_t at) { return at < part || at >= known.size - part; };
    for (std::size_t at = 0; at < bytes; at = at + 1 == part ? std::max(part, known.size - part) : at + 1) {
      if (filled(at) && block[at] != known.fill) {
        expect(false, "a live block lost its contents");
        return;
      }
    }
  }

  void add(void* memory, std::size_t size, std::size_t alignment, std::size_t heap) {
    auto* const block = static_cast<unsigned char*>(memory);
    expect(block != nullptr, "an allocation failed though there is memory");
    if (block == nullptr) {
      return;
    }
    expect(reinterpret_cast<std::uintptr_t>(block) % std::max<std::size_t>(alignment, 16) == 0,
           "a block is not aligned");
    expect(by_usable_size(block) >= size, "a block is smaller than it was asked for");
    const auto after = blocks_.lower_bound(block);
    expect(after == blocks_.end() || block + std::max<std::size_t>(size, 1) <= after->first, "two live blocks overlap");
    expect(after == blocks_.begin() || std::prev(after)->first + std::prev(after)->second.size <= block,
           "two live blocks overlap");
    const Block known{size, static_cast<unsigned char>(++births_ * 7 + 1), heap};
    fill(block, known);
    blocks_[block] = known;
  }

  Blocks::iterator pick() {
    auto found = blocks_.begin();
    std::advance(found, static_cast<std::ptrdiff_t>(bytes_.byte() % blocks_.size()));
    return found;
  }

  void remove() {
    if (blocks_.empty()) {
      return;
    }
    const auto found = pick();
    const Block known = found->second;
    unsigned char* const block = found->first;
    check_contents(block, known.size, known);
    blocks_.erase(found);
    switch (bytes_.byte() % 8) {
      case 0:
        by_free_sized(block, known.size);
        break;
      case 1:
        std::thread([=] { by_free(block); }).join();
        break;
      case 2:
        if (known.heap != 0) {
          by_arena_free(heaps_[known.heap - 1], block);
          break;
        }
        [[fallthrough]];
      default:
        by_free(block);
        break;
    }
  }

  void resize() {
    if (blocks_.empty()) {
      add(by_realloc(nullptr, 40), 40, 16, 0);
      return;
    }
    const auto found = pick();
    const Block known = found->second;
    const std::size_t wanted = size();
    unsigned char* const old = found->first;
    blocks_.erase(found);
    auto* const moved = static_cast<unsigned char*>(by_realloc(old, wanted));
    expect(moved != nullptr, "a reallocation failed though there is memory");
    if (moved == nullptr) {
      return;
    }
    check_contents(moved, std::min(known.size, wanted), known);
    // In place it stays where it was; moved, it is the thread's.
    add(moved, wanted, 16, moved == old ? known.heap : 0);
  }

  void zeroed() {
    const std::size_t count = bytes_.byte() % 64;
    const std::size_t each = size() / 16;
    auto* const block = static_cast<unsigned char*>(by_calloc(count, each));
    if (block != nullptr) {
      expect(std::all_of(block, block + count * each, [](unsigned char byte) { return byte == 0; }),
             "a zeroed block is not zero");
    }
    add(block, count * each, 16, 0);
  }

  void use_arena() {
    const std::size_t which = bytes_.byte() % arenas;
    by_arena*& heap = heaps_[which];
    if (heap == nullptr) {
      heap = by_arena_create();
      expect(heap != nullptr, "no heap could be made");
      return;
    }
    const unsigned what = bytes_.byte() % 8;
    if (what == 0) {
      std::erase_if(blocks_, [&](const auto& entry) { return entry.second.heap == which + 1; });
      by_arena_destroy(heap);
      heap = nullptr;
      return;
    }
    const std::size_t wanted = size();
    if (what == 1) {
      const std::size_t aligned = alignment();
      add(by_arena_aligned_alloc(heap, aligned, wanted), wanted, aligned, which + 1);
    } else if (what == 2) {
      add(by_arena_calloc(heap, 1, wanted), wanted, 16, which + 1);
    } else {
      add(by_arena_alloc(heap, wanted), wanted, 16, which + 1);
    }
  }

  void impossible() {
    errno = 0;
    expect(by_malloc(SIZE_MAX - bytes_.byte()) == nullptr && errno == ENOMEM, "an impossible size was not refused");
    errno = 0;
    expect(by_calloc(SIZE_MAX / 2, 3) == nullptr && errno == ENOMEM, "an overflowing product was not refused");
    errno = 0;
    expect(by_aligned_alloc(24, 8) == nullptr && errno == EINVAL,
           "an alignment that is no power of two was not refused");
  }

  void look() {
    by_heap_statistics now{};
    by_heap_get_statistics(&now);
    expect(now.live <= now.used && now.used <= now.committed, "the statistics contradict themselves");
  }

  void step() {
    const unsigned kind = bytes_.byte() % 32;
    if (kind < 10) {
      const std::size_t wanted = size();
      add(by_malloc(wanted), wanted, 16, 0);
    } else if (kind < 20) {
      remove();
    } else if (kind < 23) {
      resize();
    } else if (kind < 25) {
      const std::size_t aligned = alignment();
      const std::size_t wanted = size();
      add(by_aligned_alloc(aligned, wanted), wanted, aligned, 0);
    } else if (kind < 27) {
      use_arena();
    } else {
      switch (kind) {
        case 27:
          zeroed();
          break;
        case 28:
          by_heap_frame_end(bytes_.byte() * std::uint64_t{1000});
          break;
        case 29:
          by_heap_reserve(std::size_t{bytes_.byte()} << 14);
          break;
        case 30:
          by_heap_trim();
          look();
          break;
        default:
          impossible();
          break;
      }
    }
  }

  void end() {
    for (const auto& [block, known] : blocks_) {
      check_contents(block, known.size, known);
      by_free(block);
    }
    for (by_arena* const heap : heaps_) {
      by_arena_destroy(heap);
    }
    check_heap();
  }

  Bytes bytes_;
  std::size_t most_filled_;
  const char* fault_ = nullptr;
  unsigned births_ = 0;
  Blocks blocks_;
  std::array<by_arena*, arenas> heaps_{};
};

}  // namespace heap_exercise
