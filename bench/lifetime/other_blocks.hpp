// The other blocks of a recorded program, which are not for temp. They are allocated from the measured allocator, or
// from malloc where a lifetime is measured, so that frames find a heap in the program's state.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "blockyard/adapter.h"
#include "frame_blocks.hpp"

namespace blockyard::bench {

class OtherBlocks {
 public:
  /// Allocates what is live before the first frame. `adapter` is null for the system's malloc.
  OtherBlocks(const by_adapter* adapter, const FrameBlocks& program)
      : adapter_(adapter), program_(program), memory_(program.others.size()) {
    restore();
  }

  /// Makes the program's calls up to where it allocated taken[place].
  void go_to(std::size_t place) {
    for (; next_ < program_.calls.size() && program_.calls[next_].place <= place; ++next_) {
      const OtherCall& call = program_.calls[next_];
      call.frees ? free(call.block) : allocate(call.block);
    }
  }

  /// Returns to the state before the first frame.
  void restart() {
    for (const OtherCall& call : program_.calls) {
      if (!call.frees) {
        free(call.block);
      }
    }
    next_ = 0;
    restore();
  }

 private:
  void restore() {
    for (const std::uint32_t block : program_.alive) {
      if (memory_[block] == nullptr) {
        allocate(block);
      }
    }
  }

  void allocate(std::uint32_t block) {
    const auto [size, alignment] = program_.others[block];
    const bool aligned = alignment > alignof(std::max_align_t);
    void* memory = nullptr;
    if (adapter_ == nullptr) {
      memory = aligned ? std::aligned_alloc(alignment, size) : std::malloc(size);
    } else {
      memory = aligned ? adapter_->allocate_aligned(alignment, size) : adapter_->allocate(size);
    }
    if (memory != nullptr) {
      std::memset(memory, 1, std::min<std::size_t>(size, written));
    }
    memory_[block] = memory;
  }

  void free(std::uint32_t block) {
    void* const memory = memory_[block];
    memory_[block] = nullptr;
    if (memory == nullptr) {
      return;
    }
    const auto [size, alignment] = program_.others[block];
    if (adapter_ == nullptr) {
      std::free(memory);
    } else if ((adapter_->flags & BY_ADAPTER_SIZED_FREE) != 0) {
      adapter_->free_sized(memory, size, alignment);
    } else {
      adapter_->free(memory);
    }
  }

  static constexpr std::size_t written = 64;  ///< bytes of each block, since a program uses what it allocates

  const by_adapter* adapter_;
  const FrameBlocks& program_;
  std::vector<void*> memory_;  ///< null: not allocated now
  std::size_t next_ = 0;       ///< of the calls
};

}  // namespace blockyard::bench
