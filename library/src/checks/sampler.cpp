#include "checks/sampler.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "base/atomic.hpp"
#include "base/pages.hpp"
#include "base/process.hpp"
#include "checks/report.hpp"
#include "checks/watched.hpp"

namespace blockyard::checks {

constinit char* sampled_pages = nullptr;  // the first is a guard page
constinit std::size_t sampled_area = 0;
constinit thread_local std::uint32_t until_sample __attribute__((tls_model("initial-exec"))) = 1;

namespace {

constexpr std::size_t slot_count = small_samples + large_samples;
constexpr std::size_t filled = 64;  // bytes before a block; behind it all to the end of its page

enum State : int { unused, live, changing, freed };

struct Slot {
  base::Atomic<int> state{unused};
  Known known;
};

constinit std::array<Slot, slot_count> slots{};
constinit std::uint32_t average_sample = 0;
constinit base::Atomic<std::uint32_t> next_slot{0};
constinit base::Atomic<std::uint32_t> next_large_slot{0};
constinit thread_local std::uint32_t chance __attribute__((tls_model("initial-exec"))) = 0;

std::size_t small_slot() { return 2 * base::page_size(); }  // its page, and the one behind it that nobody may touch
std::size_t large_slot() { return large_sample + base::page_size(); }

// The end of a slot's pages: there begins the page that nobody may touch.
char* end_of_slot(std::size_t slot) {
  char* const first = sampled_pages + base::page_size();
  return slot < small_samples
             ? first + slot * small_slot() + base::page_size()
             : first + small_samples * small_slot() + (slot - small_samples) * large_slot() + large_sample;
}
std::size_t slot_of(const void* pointer) {
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(pointer) - (sampled_pages + base::page_size()));
  return offset < small_samples * small_slot() ? offset / small_slot()
                                               : small_samples + (offset - small_samples * small_slot()) / large_slot();
}
// A block's pages are the last of its slot.
std::size_t bytes_of_pages(std::size_t size) {
  return (size + base::page_size() - 1) / base::page_size() * base::page_size();
}

// Marsaglia's xorshift, seeded by the thread.
std::uint32_t draw() {
  chance ^= chance << 13;
  chance ^= chance >> 17;
  chance ^= chance << 5;
  return chance;
}

// The slot whose live block begins at `pointer`, or the report that none does.
Slot& live_slot(const char* doing, const void* pointer) {
  Slot& slot = slots[std::min(slot_of(pointer), slot_count - 1)];
  const int state = slot.state.load(std::memory_order_acquire);
  char what[100];
  if (slot.known.block != pointer || state == unused) {
    std::snprintf(what, sizeof what, "%s of a pointer into the middle of a block", doing);
    report_fault(what, pointer, &slot.known);
  }
  if (state != live) {
    std::snprintf(what, sizeof what, "%s of a block that was freed already", doing);
    report_fault(what, pointer, &slot.known);
  }
  return slot;
}

void report_access(const void* pointer) {
  const auto* const address = static_cast<const char*>(pointer);
  const bool before_all = address < sampled_pages + base::page_size();
  const std::size_t ahead = before_all ? 0 : slot_of(address);
  if (!before_all && address < end_of_slot(ahead)) {
    const Slot& slot = slots[ahead];
    if (slot.state.load(std::memory_order_relaxed) != live) {
      report_fault("a block was touched after it was freed", address, &slot.known);
    }
    report_fault(slot.known.size == 0 ? "something beyond the end of a block was touched"
                                      : "something before the beginning of a block was touched",
                 address, &slot.known);
  }
  // A page between two slots: it was the nearer one's block, or that of the only one in use.
  const std::size_t behind = before_all ? 0 : std::min(ahead + 1, slot_count - 1);
  const bool near_ahead = static_cast<std::size_t>(address - sampled_pages) % base::page_size() < base::page_size() / 2;
  if (slots[ahead].known.block != nullptr && !before_all &&
      (near_ahead || slots[behind].known.block == nullptr || ahead == behind)) {
    report_fault("something beyond the end of a block was touched", address, &slots[ahead].known);
  }
  report_fault("something before the beginning of a block was touched", address, &slots[behind].known);
}

}  // namespace

bool start_sampler(std::uint32_t average) {
  average_sample = average;
  sampled_area = base::page_size() + small_samples * small_slot() + large_samples * large_slot();
  sampled_pages = static_cast<char*>(base::reserve_space(sampled_area, base::page_size()));
  return sampled_pages != nullptr;
}

void start_trap() {
  start_stacks();
  base::report_forbidden_accesses(is_sampled, report_access);
}

bool draw_sample() {
  if (average_sample == 0) {
    return false;  // and not again for 2^32 blocks
  }
  const bool begins = chance == 0;
  if (begins) {
    const auto seed = reinterpret_cast<std::uintptr_t>(&chance) ^ base::monotonic_ns();
    chance = static_cast<std::uint32_t>(seed ^ seed >> 32) | 1;
  }
  // With the square of the samples so far, so that the first 64 are among 5,000 blocks.
  constexpr std::uint32_t all_sampled = 16;
  const std::uint32_t so_far = std::min(next_slot.load(std::memory_order_relaxed), std::uint32_t{1} << 15);
  const std::uint32_t now = std::min(average_sample, so_far * so_far / all_sampled + 1);
  until_sample = 1 + draw() % (2 * now - 1);
  return !begins || so_far < all_sampled;
}

void* allocate_sampled(std::size_t size, std::size_t alignment) {
  if (size > large_sample || alignment > base::page_size() || NoStacks::here()) {
    return nullptr;
  }
  const bool is_large = size > base::page_size();
  base::Atomic<std::uint32_t>& next = is_large ? next_large_slot : next_slot;
  constexpr std::uint32_t tries = 4;
  for (std::uint32_t turn = 0; turn < tries; ++turn) {
    const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
    const std::size_t index = is_large ? small_samples + number % large_samples : number % small_samples;
    Slot& slot = slots[index];
    int seen = slot.state.load(std::memory_order_relaxed);
    if ((seen != unused && seen != freed) ||
        !slot.state.compare_exchange_strong(seen, changing, std::memory_order_acquire)) {
      continue;
    }
    const std::size_t bytes = bytes_of_pages(size);
    char* const end = end_of_slot(index);
    char* const pages = end - bytes;
    if (bytes != 0 && !base::commit_pages(pages, bytes)) {
      slot.state.store(seen, std::memory_order_release);
      return nullptr;
    }
    char* block = end - base::page_size();  // of no bytes: nobody may touch it
    if (bytes != 0) {
      // At the end of its pages, where most go wrong, or at their beginning.
      const bool at_end = draw() % 4 != 0;
      block = pages + (at_end ? (bytes - size) & ~(alignment - 1) : 0);
      char* const before_block = std::max(pages, block - filled);
      std::memset(before_block, around_byte, static_cast<std::size_t>(block - before_block));
      std::memset(block + size, around_byte, static_cast<std::size_t>(end - block) - size);
      if (!is_large) {
        std::memset(block, 0, size);  // as in the larger ones, whose pages are new
      }
    }
    slot.known = {block, size, this_call(), {}};
    slot.state.store(live, std::memory_order_release);
    return block;
  }
  return nullptr;
}

void free_sampled(void* pointer) {
  Slot& slot = live_slot("free", pointer);
  int seen = live;
  if (!slot.state.compare_exchange_strong(seen, changing, std::memory_order_acquire)) {
    live_slot("free", pointer);  // another thread's free came first
  }
  const char* const block = static_cast<const char*>(slot.known.block);
  char* const end = end_of_slot(slot_of(block));
  const std::size_t bytes = bytes_of_pages(slot.known.size);
  if (bytes != 0 && !is_filled(block + slot.known.size, end, around_byte)) {
    report_fault("something was written behind the end of a block", block, &slot.known);
  }
  if (bytes != 0 && !is_filled(std::max<const char*>(end - bytes, block - filled), block, around_byte)) {
    report_fault("something was written before the beginning of a block", block, &slot.known);
  }
  slot.known.freed = this_call();
  // Where the system refuses, a touch goes unnoticed.
  if (bytes > base::page_size()) {
    static_cast<void>(base::discard_pages(end - bytes, bytes));
  }
  if (bytes != 0) {
    static_cast<void>(base::protect_pages(end - bytes, bytes));
  }
  slot.state.store(freed, std::memory_order_release);
}

std::size_t sampled_bytes(const void* block) { return live_slot("size asked", block).known.size; }

}  // namespace blockyard::checks
