#include "heap/checked/stacks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/atomic.hpp"
#include "base/pages.hpp"
#include "base/process.hpp"
#include "base/stack.hpp"
#include "heap/fault.hpp"

namespace blockyard::heap::checked {
namespace {

using base::Atomic;

constexpr std::uint32_t stacks = 1u << 16;
constexpr std::uint32_t most_probes = 64;

struct Entry {
  Atomic<std::uint64_t> hash{0};  // 0: free; odd: the frames are there; even: they are being written
  std::array<void*, stack_depth> frames{};
};

constinit Atomic<Entry*> table{nullptr};
thread_local bool taking __attribute__((tls_model("initial-exec"))) = false;

std::uint64_t hash_of(void* const* frames, std::size_t count) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(frames[i])) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash | 3;
}

}  // namespace

std::uint32_t take_stack() {
  Entry* const entries = table.load(std::memory_order_acquire);
  if (entries == nullptr || taking) {
    return 0;
  }
  taking = true;  // the unwinder may allocate
  std::array<void*, stack_depth> frames{};
  const std::size_t count = base::capture_stack(frames.data(), frames.size());
  taking = false;
  const std::uint64_t hash = hash_of(frames.data(), count);
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

std::size_t read_stack(std::uint32_t stack, void* (&frames)[stack_depth]) {
  const Entry* const entries = table.load(std::memory_order_acquire);
  std::size_t count = 0;
  if (stack != 0 && entries != nullptr) {
    for (; count < stack_depth && entries[stack - 1].frames[count] != nullptr; ++count) {
      frames[count] = entries[stack - 1].frames[count];
    }
  }
  std::fill(frames + count, frames + stack_depth, nullptr);
  return count;
}

void print_stack(std::uint32_t stack) {
  void* frames[stack_depth];
  const std::size_t count = read_stack(stack, frames);
  if (count == 0) {
    say("    (no stack was taken)\n");
    return;
  }
  taking = true;
  say_frames(frames, count, "    ");
  taking = false;
}

void start_stacks() {
  const char* const wanted = base::environment("BLOCKYARD_HEAP_STACKS");
  if (wanted != nullptr && std::strcmp(wanted, "0") == 0) {
    return;
  }
  auto* const entries = static_cast<Entry*>(base::reserve_pages(sizeof(Entry) * stacks));
  if (entries != nullptr) {
    void* frames[2];
    base::capture_stack(frames, 2);
    table.store(entries, std::memory_order_release);
  }
}

}  // namespace blockyard::heap::checked
