// Statistics of the lifetimes, as figures and as text.
#include "base/say.hpp"
#include "blockyard/blockyard.h"
#include "lifetime/chunk_store.hpp"
#include "lifetime/temp.hpp"
#include "lifetime/thread_state.hpp"

namespace {

using namespace blockyard;
using namespace blockyard::lifetime;

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

extern "C" {

void by_lifetime_get_statistics(by_lifetime_statistics* statistics) {
  *statistics = {};
  add_ended(statistics->temp);
  for (const ThreadState* state = known_threads(); state != nullptr; state = state->next_known) {
    if (state->number != 0) {
      statistics->threads += 1;
      add_figures(statistics->temp, state->figures);
    }
  }
  const ChunkFigures chunks = chunk_figures();
  statistics->frames = job_frame();
  statistics->temp_job_chunk_bytes = chunks.held_bytes;
  statistics->temp_job_free_bytes = chunks.held_bytes - chunks.used_bytes;
  statistics->temp_job_peak_bytes = chunks.peak_used_bytes;
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
