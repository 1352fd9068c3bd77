#include "heap/front/large_blocks.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "base/atomic.hpp"
#include "base/bound.hpp"
#include "base/index_list.hpp"
#include "base/pages.hpp"
#include "checks/report.hpp"
#include "heap/front/hardening.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/index_stack.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/size_class.hpp"

namespace blockyard::heap {

namespace {

// Caches a freed block, where none of its length is cached yet.
bool cache_run(ThreadHeap* heap, void* block, PageTag& tag) {
  if (tag.length > longest_run || tag.length < shortest_run || (tag.flags & ~page_populated) != 0 ||
      heap == &empty_heap) {
    return false;
  }
  void*& cached = heap->runs[tag.length - shortest_run];
  if (cached != nullptr || !page_allocator.may_be_cached(tag.length)) {
    return false;
  }
  tag.flags |= page_cached;
  cached = block;
  return true;
}

PageTag& tag_of(std::uint32_t page) { return region.pages[page]; }

// An arena's blocks are linked by their tags, under the lock that guards these.
void link_to(ThreadHeap* arena, std::uint32_t page) {
  const std::lock_guard hold(page_allocator.pages.lock());
  tag_of(page).flags |= page_of_arena;
  tag_of(page).owner = static_cast<std::uint16_t>(arena->index);
  base::list_push(arena->blocks, page, tag_of);
}

void give_back_block(std::uint32_t page) {
  if ((tag_of(page).flags & page_of_arena) != 0) {
    const std::lock_guard hold(page_allocator.pages.lock());
    base::list_remove(process_heaps.at(tag_of(page).owner)->blocks, page, tag_of);
  }
  page_allocator.give_pages(page);
}

}  // namespace

void* take_cached_run(std::size_t size) {
  const std::size_t pages = (size + page_bytes - 1) >> page_shift;
  if (pages > longest_run) {
    return nullptr;
  }
  void*& cached = thread_heap->runs[pages - shortest_run];
  void* const block = cached;
  if (block != nullptr) {  // never in the empty heap, which all threads share and nobody may write
    cached = nullptr;
    region.pages[region.page_of(block)].flags &= static_cast<std::uint8_t>(~page_cached);
  }
  return block;
}

void* take_run(std::size_t size, std::size_t alignment, bool* zeroed, ThreadHeap* arena) {
  const std::uint32_t page = page_allocator.take_pages(size, alignment, zeroed);
  if (page == 0) {
    return nullptr;
  }
  if (arena != nullptr) {
    link_to(arena, page);
  }
  return region.page_address(page);
}

void clear_run(void* block, std::size_t size) {
  if (size > zeroed_limit) {
    region.pages[region.page_of(block)].flags &= static_cast<std::uint8_t>(~page_populated);
    if (base::discard_pages(block, size)) {
      return;
    }
  }
  std::memset(block, 0, size);
}

bool is_live_run(const void* pointer) {
  const std::size_t page = region.page_of(pointer);
  const PageTag& tag = region.pages[page];
  return region.page_address(page) == pointer && tag.state == PageState::used_block && (tag.flags & page_cached) == 0;
}

void free_run(void* block) {
  const std::size_t page = region.page_of(block);
  PageTag& tag = region.pages[page];
  if (!is_live_run(block)) {
    checks::report_fault("free of a pointer that is no live block (freed twice, or inside a block)", block);
  }
  if (!cache_run(thread_heap, block, tag)) {
    give_back_block(static_cast<std::uint32_t>(page));
  }
}

void free_runs_of(ThreadHeap* arena) {
  base::Bound blocks("blocks of whole pages of an arena destroyed",
                     [&] { return page_allocator.pages.totals().used / shortest_run; });
  while (arena->blocks != 0) {
    blocks.turn();
    give_back_block(arena->blocks);
  }
}

bool resize_run(void* block, std::size_t size) {
  const auto page = static_cast<std::uint32_t>(region.page_of(block));
  std::uint8_t& flags = region.pages[page].flags;
  const bool populated = (flags & page_populated) != 0;
  if (size <= run_bytes(block)) {
    page_allocator.pages.shrink(page, pages_of(size), populated ? PageState::free_ready : PageState::free_dirty);
    return true;
  }
  const bool stays_populated = populated && size <= medium_limit;
  if (size >= region.most_bytes || !page_allocator.pages.grow(page, pages_of(size), stays_populated)) {
    return false;
  }
  if (!stays_populated) {
    flags &= static_cast<std::uint8_t>(~page_populated);
  }
  return true;
}

bool grow_run_at_limit(void* block, std::size_t size) {
  const auto page = static_cast<std::uint32_t>(region.page_of(block));
  if (size >= region.most_bytes || !page_allocator.grow_at_limit(page, pages_of(size))) {
    return false;
  }
  region.pages[page].flags &= static_cast<std::uint8_t>(~page_populated);
  return true;
}

namespace {

// The multiples of block_alignment in the region's first bytes; indices from 1 on.
constexpr std::uint32_t empty_blocks = never_mapped / block_alignment;
constexpr std::uint32_t live_empty = ~std::uint32_t{0};  // in place of a link

// Zero to begin with, so that the table takes no room in the file.
constinit std::array<Atomic<std::uint32_t>, empty_blocks> empty_links{};
constinit Atomic<std::uint32_t> empty_begun{0};  // indices handed out at least once
constinit IndexStack<> empty_freed;

Atomic<std::uint32_t>& link_of_empty(std::uint32_t index) { return empty_links[index]; }

}  // namespace

void* take_empty_block() {
  std::uint32_t index = empty_freed.pop(link_of_empty);
  if (index == 0) {
    // Past the end only by as many as threads come here at once.
    if (empty_begun.load(std::memory_order_relaxed) >= empty_blocks || region.mapped() == 0) {
      return nullptr;
    }
    index = empty_begun.fetch_add(1, std::memory_order_relaxed) + 1;
    if (index >= empty_blocks) {
      return nullptr;
    }
  }
  empty_links[index].store(live_empty, std::memory_order_relaxed);
  return region.base + index * block_alignment;
}

bool is_among_empty_blocks(const void* pointer) { return region.offset_of(pointer) < never_mapped; }

std::size_t usable_of_empty_block(const void* pointer) {
  const std::size_t offset = region.offset_of(pointer);
  if (offset >= never_mapped || offset % block_alignment != 0 ||
      empty_links[offset / block_alignment].load(std::memory_order_relaxed) != live_empty) {
    checks::report_fault("size asked of a pointer that is no live block", pointer);
  }
  return 0;
}

void give_empty_block(const void* block) {
  const auto index = static_cast<std::uint32_t>(region.offset_of(block) / block_alignment);
  if (index == 0 || index > empty_begun.load(std::memory_order_relaxed)) {
    checks::report_fault("free of a pointer that this heap never handed out", block);
  }
  std::uint32_t expected = live_empty;
  if (!empty_links[index].compare_exchange_strong(expected, 0, std::memory_order_relaxed)) {
    report_freed_twice(block);
  }
  empty_freed.push(index, link_of_empty);
}

}  // namespace blockyard::heap
