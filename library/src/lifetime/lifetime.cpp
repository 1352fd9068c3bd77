// The functions that take a lifetime, lifetimes' memory resources, the end of the program's frame, and statistics.
#include "blockyard/lifetime.hpp"

#include <algorithm>
#include <cstring>

#include "base/kept_errno.hpp"
#include "base/say.hpp"
#include "blockyard/blockyard.h"
#include "blockyard/detail/type_record.hpp"
#include "blockyard/frame.h"
#include "blockyard/heap.h"
#include "checks/report.hpp"
#include "lifetime/chunk_store.hpp"
#include "lifetime/temp.hpp"
#include "lifetime/thread_state.hpp"

namespace blockyard {
namespace {

using namespace lifetime;

void* allocate_persistent(std::size_t size, std::size_t alignment) {
  if (!is_valid_alignment(alignment)) {
    return base::failed(EINVAL);
  }
  return alignment <= alignof(std::max_align_t) ? by_malloc(size) : by_aligned_alloc(alignment, size);
}

bool fits_persistent(const void* block, std::size_t size, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0 && size <= by_usable_size(block) &&
         size >= by_usable_size(block) / 2;
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

double kib(std::size_t bytes) { return static_cast<double>(bytes) / 1024.0; }
unsigned long long count(std::uint64_t value) { return value; }

void say_histogram(int descriptor, const by_temp_statistics& temp) {
  for (unsigned k = 0; k < BY_PEAK_BUCKETS; ++k) {
    if (temp.frames_by_peak[k] == 0) {
      continue;
    }
    const unsigned long long from = k == 0 ? 0 : 1ull << (k - 1);
    if (k + 1 == BY_PEAK_BUCKETS) {
      base::say_to(descriptor, "    peak [%llu KiB and more]: %llu frames\n", from, count(temp.frames_by_peak[k]));
    } else {
      base::say_to(descriptor, "    peak [%llu KiB-%llu KiB): %llu frames\n", from, 1ull << k,
                   count(temp.frames_by_peak[k]));
    }
  }
}

void say_temp(int descriptor, const by_temp_statistics& temp) {
  base::say_to(descriptor, "    frames %llu, region %.1f KiB, grown %llu times\n", count(temp.frames),
               kib(temp.region_bytes), count(temp.grown));
  base::say_to(descriptor, "    high-water mark %.1f KiB, most demanding frame %.1f KiB\n", kib(temp.peak_bytes),
               kib(temp.peak_demand_bytes));
  base::say_to(descriptor, "    overflow count (too large) %llu, overflow count (full) %llu\n",
               count(temp.overflow_too_large), count(temp.overflow_full));
  say_histogram(descriptor, temp);
}

// Calls what(number, figures) for each live thread. One that ends meanwhile may be left out.
template <class What>
void for_each_thread(What&& what) {
  for (const ThreadState* state = known_threads(); state != nullptr; state = state->next_known) {
    const std::uint32_t number = state->number;
    by_temp_statistics temp{};
    add_figures(temp, state->figures);
    if (number != 0 && number == state->number) {
      what(number, temp);
    }
  }
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
using namespace blockyard::lifetime;

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
  return base::failed(EINVAL);
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
    return base::failed(EINVAL);
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

void by_lifetime_get_statistics(by_lifetime_statistics* statistics) {
  *statistics = {};
  add_ended(statistics->temp);
  for (const ThreadState* state = known_threads(); state != nullptr; state = state->next_known) {
    if (state->number != 0) {
      statistics->threads += 1;
      add_figures(statistics->temp, state->figures);
    }
  }
  statistics->frames = job_frame();
  count_chunks(statistics);
  statistics->temp_job_large = large_jobs();
  statistics->leaks_reported = by_leaks_reported();
}

size_t by_lifetime_get_thread_statistics(by_lifetime_thread_statistics* threads, size_t room) {
  size_t found = 0;
  for_each_thread([&](std::uint32_t number, const by_temp_statistics& temp) {
    if (found < room) {
      threads[found] = {number, temp};
    }
    found += 1;
  });
  return found;
}

void by_lifetime_dump_statistics(int descriptor) {
  by_lifetime_statistics all;
  by_lifetime_get_statistics(&all);
  base::say_to(descriptor, "blockyard: lifetimes after %llu frames\n", count(all.frames));
  base::say_to(descriptor, "  temp, all threads (%u alive)\n", all.threads);
  say_temp(descriptor, all.temp);
  for_each_thread([&](std::uint32_t number, const by_temp_statistics& temp) {
    base::say_to(descriptor, "  temp, thread %u\n", number);
    say_temp(descriptor, temp);
  });
  base::say_to(descriptor, "  temp job\n    memory %.1f KiB, of it free %.1f KiB, high-water mark %.1f KiB\n",
               kib(all.temp_job_chunk_bytes), kib(all.temp_job_free_bytes), kib(all.temp_job_peak_bytes));
  base::say_to(descriptor, "    blocks with a chunk of their own %llu, reported as too old %llu\n",
               count(all.temp_job_large), count(all.leaks_reported));
}

}  // extern "C"
