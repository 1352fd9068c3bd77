#include "checks/report.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/atomic.hpp"
#include "base/kept_errno.hpp"
#include "base/pages.hpp"
#include "base/process.hpp"
#include "base/say.hpp"
#include "base/stack.hpp"

namespace blockyard::checks {

namespace {

using base::Atomic;
using base::say;

constexpr std::uint32_t stacks = 1u << 16;
constexpr std::uint32_t most_probes = 64;

struct Entry {
  Atomic<std::uint64_t> hash{0};  // 0: free; odd: the frames are there; even: they are being written
  Stack frames{};
};

constinit Atomic<bool> is_ready{false};
constinit Atomic<Entry*> table{nullptr};
constinit thread_local bool none_here __attribute__((tls_model("initial-exec"))) = false;

std::uint64_t hash_of(const Stack& frames) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (void* const frame : frames) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(frame)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash | 3;
}

constinit std::atomic<bool> has_begun{false};

void say_call(const char* what, const Known::Call& call) {
  say("  %s by thread %u, at\n", what, call.thread);
  const auto end = std::find(call.stack.begin(), call.stack.end(), nullptr);
  if (end == call.stack.begin()) {
    say("    (no stack was taken)\n");
  }
  say_frames(call.stack.data(), static_cast<std::size_t>(end - call.stack.begin()), "    ");
}

}  // namespace

NoStacks::NoStacks() : before_(none_here) { none_here = true; }
NoStacks::~NoStacks() { none_here = before_; }
bool NoStacks::here() { return none_here; }
const void* NoStacks::variable() { return &none_here; }

Stack take_stack() {
  Stack frames{};
  if (is_ready.load(std::memory_order_relaxed) && !none_here) {
    const NoStacks within;
    base::capture_stack(frames.data(), frames.size());
  }
  return frames;
}

std::uint32_t keep_stack() {
  Entry* const entries = table.load(std::memory_order_acquire);
  if (entries == nullptr || none_here) {
    return 0;
  }
  const base::KeptErrno kept;
  const Stack frames = take_stack();
  const std::uint64_t hash = hash_of(frames);
  for (std::uint32_t probe = 0; probe < most_probes; ++probe) {
    const std::uint32_t index = (static_cast<std::uint32_t>(hash >> 20) + probe) % stacks;
    Entry& entry = entries[index];
    std::uint64_t seen = entry.hash.load(std::memory_order_acquire);
    // Nobody waits for who is writing one: in a forked child that thread is gone.
    const std::uint64_t underway = hash ^ 1;
    if (seen == 0 &&
        entry.hash.compare_exchange_strong(seen, underway, std::memory_order_acquire, std::memory_order_acquire)) {
      entry.frames = frames;
      entry.hash.store(hash, std::memory_order_release);
      return index + 1;
    }
    if (seen == hash) {
      return index + 1;
    }
  }
  return 0;
}

Stack kept_stack(std::uint32_t number) {
  const Entry* const entries = table.load(std::memory_order_acquire);
  return number != 0 && entries != nullptr ? entries[number - 1].frames : Stack{};
}

void start_stacks() {
  Stack frames;
  base::capture_stack(frames.data(), frames.size());
  is_ready.store(true, std::memory_order_relaxed);
}

void start_stack_table() {
  table.store(static_cast<Entry*>(base::reserve_pages(sizeof(Entry) * stacks)), std::memory_order_release);
}

Known::Call this_call() { return {static_cast<std::uint32_t>(base::thread_id()), take_stack()}; }

void say_frames(void* const* frames, std::size_t count, const char* before) {
  std::size_t first = count;
  while (first > 0 && !base::is_own_code(frames[first - 1])) {
    --first;
  }
  for (std::size_t i = first; i < count; ++i) {
    char text[400];
    base::describe_address(frames[i], text, sizeof text);
    say("%s%s\n", before, text);
  }
}

void report_fault(const char* what, const void* pointer, const Known* known) {
  say("blockyard: %s: %p\n", what, pointer);
  // Naming the frames allocates, from a heap that may be broken: a fault within that ends the program without more ado.
  if (none_here || has_begun.exchange(true)) {
    std::abort();
  }
  const NoStacks within;
  std::array<void*, 24> frames;
  const std::size_t count = base::capture_stack(frames.data(), frames.size());
  if (known == nullptr) {
    say_frames(frames.data(), count);
    std::abort();
  }
  say("  by thread %d, at\n", base::thread_id());
  say_frames(frames.data(), count, "    ");
  say("  the block has %zu bytes, at %p\n", known->size, known->block);
  say_call("allocated", known->allocated);
  if (known->freed.thread != 0) {
    say_call("freed", known->freed);
  }
  std::abort();
}

}  // namespace blockyard::checks
