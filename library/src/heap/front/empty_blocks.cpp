#include "heap/front/empty_blocks.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/pages.hpp"
#include "heap/front/hardening.hpp"
#include "heap/index_stack.hpp"
#include "heap/size_class.hpp"

namespace blockyard::heap {

namespace {

// Zero to begin with, so that the table takes no room in the file.
struct EmptyBlocks {
  static constexpr std::uint32_t room = 1u << 16;
  static constexpr std::size_t bytes = room * block_alignment;
  static constexpr std::uint32_t live = ~std::uint32_t{0};  // in place of a link

  Atomic<std::uintptr_t> begin{0};  // 0: not reserved yet
  Atomic<std::uint32_t> begun{0};   // indices handed out at least once, from 1 on: index 0 is none
  IndexStack<> freed;
  std::array<Atomic<std::uint32_t>, room> links{};

  // Where they lie; 0: there is no address space. Of threads that come here at once, one finds the place for all.
  std::uintptr_t reserve() {
    std::uintptr_t known = begin.load(std::memory_order_acquire);
    if (known != 0) {
      return known;
    }
    void* const space = base::reserve_space(bytes, bytes);
    const auto found = reinterpret_cast<std::uintptr_t>(space);
    if (found == 0 || begin.compare_exchange_strong(known, found, std::memory_order_acq_rel)) {
      return found;
    }
    base::release_pages(space, bytes);
    return known;
  }
};

constinit EmptyBlocks empty_blocks;

Atomic<std::uint32_t>& link_of_empty(std::uint32_t index) { return empty_blocks.links[index]; }

}  // namespace

void* take_empty_block() {
  std::uint32_t index = empty_blocks.freed.pop(link_of_empty);
  if (index == 0) {
    // Past the end only by as many as threads come here at once.
    if (empty_blocks.begun.load(std::memory_order_relaxed) >= EmptyBlocks::room || empty_blocks.reserve() == 0) {
      return nullptr;
    }
    index = empty_blocks.begun.fetch_add(1, std::memory_order_relaxed) + 1;
    if (index >= EmptyBlocks::room) {
      return nullptr;
    }
  }
  link_of_empty(index).store(EmptyBlocks::live, std::memory_order_relaxed);
  return reinterpret_cast<void*>(empty_blocks.reserve() + index * block_alignment);  // NOLINT: nothing lies there
}

bool is_among_empty_blocks(const void* pointer) {
  const std::uintptr_t begin = empty_blocks.begin.load(std::memory_order_acquire);
  return begin != 0 && reinterpret_cast<std::uintptr_t>(pointer) - begin < EmptyBlocks::bytes;
}

bool is_live_empty_block(const void* pointer) {
  if (!is_among_empty_blocks(pointer)) {
    return false;
  }
  const std::uintptr_t distance = reinterpret_cast<std::uintptr_t>(pointer) - empty_blocks.reserve();
  return distance % block_alignment == 0 &&
         link_of_empty(static_cast<std::uint32_t>(distance / block_alignment)).load(std::memory_order_relaxed) ==
             EmptyBlocks::live;
}

void give_empty_block(const void* block) {
  const std::uintptr_t distance = reinterpret_cast<std::uintptr_t>(block) - empty_blocks.reserve();
  if (distance % block_alignment != 0) {
    report_inside(block);
  }
  const auto index = static_cast<std::uint32_t>(distance / block_alignment);
  std::uint32_t expected = EmptyBlocks::live;
  if (!link_of_empty(index).compare_exchange_strong(expected, 0, std::memory_order_relaxed)) {
    report_freed_twice(block);
  }
  empty_blocks.freed.push(index, link_of_empty);
}

}  // namespace blockyard::heap
