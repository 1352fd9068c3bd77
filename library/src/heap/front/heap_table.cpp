#include "heap/front/heap_table.hpp"

#include <mutex>
#include <new>

#include "base/pages.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"
#include "pages/injected_failure.hpp"
#include "threads/registry.hpp"

namespace blockyard::heap {

constinit HeapTable process_heaps;

namespace {

constinit threads::ThreadEnds<ThreadHeap> thread_ends;

}  // namespace

bool HeapTable::reserve(base::ThreadExit::Callback at_thread_exit) {
  heaps_ = region.beside;
  return make_room(1) && thread_ends.open(at_thread_exit);
}

// Maps a part of the table that holds the heap. The lock is held across fork, and whoever makes a heap holds none.
bool HeapTable::make_room(std::uint32_t index) {
  constexpr std::uint32_t most = 1u << 16;
  const auto step = static_cast<std::uint32_t>(base::page_size() / 512);  // whole pages: a heap has a multiple of 512
  static_assert(most * heap_stride <= heap_table_bytes && heap_stride % 512 == 0);
  if (index < room_.load(std::memory_order_acquire)) {
    return true;
  }
  const std::lock_guard hold(page_allocator.pages.lock());
  const std::uint32_t room = room_.load(std::memory_order_relaxed);
  if (index < room) {
    return true;
  }
  if (room == most || !base::reserve_pages_at(at(room), step * heap_stride)) {
    return false;
  }
  room_.store(room + step, std::memory_order_release);
  return true;
}

ThreadHeap* HeapTable::construct() {
  std::uint32_t index = count_.load(std::memory_order_relaxed);
  do {
    if (acquisition_fails() || !make_room(index + 1)) {
      return nullptr;
    }
  } while (!count_.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
  auto* const heap = new (at(index + 1)) ThreadHeap(&empty_slab, index + 1);
  heap->made.store(true, std::memory_order_release);
  return heap;
}

// The heap that waited (0: none did), or else a new one.
ThreadHeap* HeapTable::new_heap(std::uint32_t waiting) {
  if (waiting != 0) {
    return at(waiting);
  }
  if (const std::uint32_t spare = spares_.pop(link()); spare != 0) {
    spare_count_.fetch_sub(1, std::memory_order_relaxed);
    return at(spare);
  }
  return construct();
}

void HeapTable::keep_spare_heaps() {
  constexpr std::uint32_t spares = 4;
  // Threads that begin meanwhile may take as many: not more of them are made in one round for that.
  for (std::uint32_t turn = 0; turn < spares && spare_count_.load(std::memory_order_relaxed) < spares; ++turn) {
    ThreadHeap* const heap = construct();
    if (heap == nullptr) {
      return;
    }
    spare_count_.fetch_add(1, std::memory_order_relaxed);
    spares_.push(heap->index, link());
  }
}

ThreadHeap* HeapTable::enter_thread() {
  ThreadHeap* const heap = heaps_ != nullptr ? new_heap(parked_.take(link())) : nullptr;
  if (heap != nullptr) {
    (settings.guard ? heap_behind_guard : thread_heap) = heap;
    thread_ends.enter(heap);
  }
  return heap;
}

ThreadHeap* HeapTable::of_thread() { return settings.guard ? heap_behind_guard : thread_heap; }

void HeapTable::leave_thread(std::uint16_t tick) {
  ThreadHeap* const heap = of_thread();
  if (heap == &empty_heap) {
    return;
  }
  thread_heap = heap_behind_guard = &empty_heap;
  thread_ends.leave();
  park(heap, tick);
}

bool HeapTable::thread_has_left() { return thread_ends.has_left(); }

bool HeapTable::only_lends(unsigned size_class) {
  constexpr std::size_t table = base::ThreadExit::table_bytes;  // the guard asks for some bytes more
  return thread_has_left() ||
         (thread_ends.enter_may_allocate() && (size_class == class_of(table) || size_class == class_of(table) + 1));
}

}  // namespace blockyard::heap
