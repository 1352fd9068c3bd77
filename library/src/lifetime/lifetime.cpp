// The functions that take a lifetime, the memory resources of lifetimes, and the end of the program's frame.
#include "blockyard/lifetime.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "blockyard/detail/type_record.hpp"
#include "blockyard/frame.h"
#include "blockyard/heap.h"
#include "checks/report.hpp"
#include "lifetime/temp.hpp"

namespace blockyard {
namespace {

using lifetime::is_valid_alignment;

void* allocate_persistent(std::size_t size, std::size_t alignment) {
  if (!is_valid_alignment(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return alignment <= alignof(std::max_align_t) ? by_malloc(size) : by_aligned_alloc(alignment, size);
}

bool fits_persistent(const void* block, std::size_t size, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0 && size <= by_usable_size(block) &&
         size >= by_usable_size(block) / 2;
}

void* refuse() {
  errno = EINVAL;
  return nullptr;
}

template <Lifetime which>
class LifetimeResource : public std::pmr::memory_resource {
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    return block::or_bad_alloc(blockyard::allocate(size, alignment, which));
  }
  void do_deallocate(void* block, std::size_t size, std::size_t) override {
    if constexpr (which == Lifetime::temp) {
      temp_deallocate(block, size);
    } else {
      blockyard::deallocate(block, which);
    }
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

// Never destroyed, since containers with static storage may use it to the end.
template <Lifetime which>
std::pmr::memory_resource* resource() noexcept {
  alignas(LifetimeResource<which>) static std::byte memory[sizeof(LifetimeResource<which>)];
  static std::pmr::memory_resource* const made = new (memory) LifetimeResource<which>;
  return made;
}

}  // namespace

std::pmr::memory_resource* temp_resource() noexcept { return resource<Lifetime::temp>(); }
std::pmr::memory_resource* temp_job_resource() noexcept { return resource<Lifetime::temp_job>(); }
std::pmr::memory_resource* persistent_resource() noexcept { return resource<Lifetime::persistent>(); }

void lifetime::report_stale_span(const void* data) noexcept {
  checks::report_fault("a temp_span was used after its frame, or on another thread", data);
}

}  // namespace blockyard

using namespace blockyard;

extern "C" {

int by_lifetime_prepare(void) {
  lifetime::ThreadState* const state = lifetime::ensure_thread(1);
  if (state == nullptr) {
    return -1;
  }
  lifetime::prepare_temp(state);
  lifetime::prepare_job(state);
  by_free(by_malloc(1));  // the thread's entry into the heap
  return 0;
}

void* by_lifetime_alloc(size_t size, size_t alignment, by_lifetime which) {
  switch (which) {
    case BY_TEMP:
      return temp_allocate(size, alignment);
    case BY_TEMP_JOB:
      return temp_job_allocate(size, alignment);
    case BY_PERSISTENT:
      return allocate_persistent(size, alignment);
  }
  return refuse();
}

void by_lifetime_free(void* block, by_lifetime which) {
  switch (which) {
    case BY_TEMP:
      temp_deallocate(block);
      break;
    case BY_TEMP_JOB:
      temp_job_deallocate(block);
      break;
    case BY_PERSISTENT:
      by_free(block);
      break;
  }
}

void* by_lifetime_realloc(void* block, size_t old_size, size_t size, size_t alignment, by_lifetime which) {
  if (!lifetime::is_valid_alignment(alignment)) {
    return refuse();
  }
  if (block == nullptr) {
    return by_lifetime_alloc(size, alignment, which);
  }
  bool stays = false;
  if (which == BY_TEMP) {
    stays = lifetime::resize_temp(block, old_size, size, alignment);
  } else if (which == BY_TEMP_JOB) {
    stays = lifetime::resize_job(block, old_size, size, alignment);
  } else if (which == BY_PERSISTENT && alignment <= alignof(std::max_align_t)) {
    return by_realloc(block, size);
  } else if (which == BY_PERSISTENT) {
    stays = fits_persistent(block, size, alignment);
  }
  void* const resized = stays ? block : by_lifetime_alloc(size, alignment, which);
  if (resized != nullptr && !stays) {
    std::memcpy(resized, block, std::min(old_size, size));
    by_lifetime_free(block, which);
    if (which == BY_TEMP_JOB) {
      lifetime::drop_padding(resized, size);
    }
  }
  return resized;
}

void by_frame_end(uint64_t budget_ns) {
  by_thread_end_frame();
  lifetime::report_old_blocks(lifetime::next_job_frame());
  by_heap_frame_end(budget_ns);
  by_frame_mark();
}

}  // extern "C"
