#include "heap/api/start.hpp"

#include <array>

#include "base/pages.hpp"
#include "base/process.hpp"
#include "base/say.hpp"
#include "base/threads.hpp"
#include "checks/report.hpp"
#include "heap/background/background_thread.hpp"
#include "heap/background/maintenance.hpp"
#include "heap/front/hardening.hpp"
#include "heap/front/heap_table.hpp"
#include "heap/front/small_blocks.hpp"
#include "heap/guard/guard.hpp"
#include "heap/pages/page_allocator.hpp"
#include "heap/settings.hpp"
#include "heap/transfer/depot.hpp"

namespace blockyard::heap {

constinit base::Atomic<CallMode> call_mode{CallMode::unready};

// Another definition of the same name wins (malloc/preload.cpp).
constinit bool begins_small __attribute__((weak)) = false;

// Beside by_malloc.
extern "C" {
extern const char by_heap_mark __attribute__((visibility("default")));
extern const char by_heap_own_mark __attribute__((visibility("hidden")));
}

namespace {

// The number that encodes free links. The low bits stay zero, so that an encoded null differs from every aligned
// pointer only by the key.
std::uintptr_t secret() {
  const std::array<std::uint64_t, 2> words = base::random_words();
  // Not the canary's own bytes: the first word is glibc's stack protector.
  std::uint64_t mixed = (words[1] ^ 0xD1B54A32D192ED03u) + words[0] * 0xBF58476D1CE4E5B9u;
  mixed ^= mixed >> 29;
  return static_cast<std::uintptr_t>(mixed * 0x94D049BB133111EBu) & ~std::uintptr_t{15};
}

enum StartPhase : int { untouched, being_readied, ready, failed };
constinit Atomic<int> start_phase{untouched};

// Runs after C++ thread_local destructors. A later destructor may still allocate: the thread then enters again, and
// this runs once more.
void on_thread_exit(void*) { process_heaps.leave_thread(page_allocator.tick.load(std::memory_order_relaxed)); }

void before_fork() {
  maintenance.sweep_lock.lock();
  page_allocator.pages.lock().lock();
}
void after_fork_in_parent() {
  page_allocator.pages.lock().unlock();
  maintenance.sweep_lock.unlock();
}
void after_fork_in_child() {
  page_allocator.pages.lock().unlock_in_child();
  maintenance.sweep_lock.unlock_in_child();
  process_depot.mend_in_child();
  maintenance.forget();
}

// Before main, where a few system calls and the first reserve cost nobody a frame.
[[gnu::constructor]] void start() {
  if (&by_heap_mark != &by_heap_own_mark) {
    return;  // of a libblockyard under a preload: it would populate a reserve for nobody
  }
  if (initialise() && settings.guard) {
    guard::start_reports();
  }
  base::around_fork(before_fork, after_fork_in_parent, after_fork_in_child);
  allow_background_thread();
}

// What no call has met: a block freed twice that is still cached, one in quarantine that was written to.
[[gnu::destructor]] void end() {
  if (settings.guard) {
    guard::check_quarantine();
  }
  if (const void* const block = check_last_freed ? freed_twice(thread_heap) : nullptr; block != nullptr) {
    checks::report_fault("this block was freed twice before the program ended", block);
  }
  if (const void* const block = check_begin ? never_handed_out(thread_heap) : nullptr; block != nullptr) {
    checks::report_fault("a pointer that this heap never handed out was freed before the program ended", block);
  }
  if (const void* const block = written_after_free(thread_heap); block != nullptr) {
    report_written_after_free(block);
  }
}

}  // namespace

bool initialise() {
  int seen = start_phase.load(std::memory_order_acquire);
  if (seen == ready) {
    return true;
  }
  if (seen == untouched && start_phase.compare_exchange_strong(seen, being_readied, std::memory_order_acquire)) {
    base::come_before_other_fork_handlers();
    read_settings();
    link_key = secret();
    const bool small = begins_small && !settings.reserve_is_set;
    page_allocator.huge_pages.allow_from_start(settings.huge_pages != 0, small);
    const bool done = reserve_region(small) && process_heaps.reserve(on_thread_exit);
    if (done && settings.guard && !guard::start()) {
      settings.guard = false;
      base::say("blockyard: there is no address space for BLOCKYARD_HEAP_GUARD; the heap goes on without\n");
    }
    if (done && small) {
      page_allocator.reserve_target.begin_small();
    } else if (done) {
      process_depot.populate();
      page_allocator.make_first_reserve();
    }
    if (done) {
      call_mode.store(settings.guard ? CallMode::guarded : CallMode::plain, std::memory_order_release);
    }
    start_phase.store(done ? ready : failed, std::memory_order_release);
    return done;
  }
  while ((seen = start_phase.load(std::memory_order_acquire)) == being_readied) {
    base::yield_thread();
  }
  return seen == ready;
}

}  // namespace blockyard::heap
