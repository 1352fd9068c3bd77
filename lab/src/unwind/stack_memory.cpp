#include "unwind/stack_memory.hpp"

extern "C" {
// Where the first thread's stack begins, by the loader of glibc.
extern void* __libc_stack_end __attribute__((weak));
}

namespace blockyard::unwind {
namespace {

// A thread's stack ends below its thread descriptor (glibc and musl put both into one mapping), and the first thread's
// where the loader found it.
constexpr std::uint64_t most_stack_bytes = std::uint64_t{256} << 20;

std::uint64_t first_unreadable(std::uint64_t from, std::uint64_t to) {
  for (; from < to; from += page_bytes) {
    if (!is_readable(from)) return from;
  }
  return to;
}

}  // namespace

StackMemory ThreadStack::find(std::uint64_t rsp) {
  const std::uint64_t page = rsp & ~(page_bytes - 1);
  const StackMemory other{rsp, page + page_bytes, true};
  if (rsp >= other_low_ && rsp < other_high_) return other;
  std::uint64_t tops[] = {reinterpret_cast<std::uint64_t>(__builtin_thread_pointer()), 0};
  if (&__libc_stack_end != nullptr) tops[1] = reinterpret_cast<std::uint64_t>(__libc_stack_end);
  for (const std::uint64_t top : tops) {
    if (high_ != 0 && top != high_) continue;
    if (rsp >= top || top - rsp > most_stack_bytes) continue;
    const std::uint64_t known = high_ != 0 ? low_ : top;
    const std::uint64_t unreadable = first_unreadable(page, known);
    if (unreadable >= known) {
      low_ = page;
      high_ = top;
      return {rsp, high_, false};
    }
    other_low_ = page;
    other_high_ = unreadable;
  }
  return other;
}

}  // namespace blockyard::unwind
