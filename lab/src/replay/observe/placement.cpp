#include "replay/observe/placement.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "clock/clock.hpp"
#include "replay/run/process_memory.hpp"

namespace blockyard::replay {
namespace {

constexpr std::uint64_t walked_bytes = 4096;
constexpr std::uint64_t line_bytes = 64;
constexpr std::uintptr_t page_bytes = 4096;

struct Fresh {
  const char* block;
  std::uint32_t event;
  std::uint32_t bytes;
};

std::uint64_t walk(std::span<const Fresh> blocks) {
  const std::uint64_t begin = clock::ticks_fenced();
  for (const Fresh& fresh : blocks) {
    for (std::uint32_t at = 0; at < fresh.bytes; at += line_bytes) *static_cast<const volatile char*>(fresh.block + at);
  }
  return clock::ticks_fenced() - begin;
}

// `begin` is the start of a page. Pages that the kernel says nothing about count as absent.
std::uint64_t resident_bytes_in(std::uintptr_t begin, std::uintptr_t end) {
  std::array<unsigned char, 1024> present;
  std::uint64_t found = 0;
  for (std::uintptr_t at = begin; at < end; at += present.size() * page_bytes) {
    const std::uintptr_t part = std::min<std::uintptr_t>(end - at, present.size() * page_bytes);
    if (mincore(reinterpret_cast<void*>(at), part, present.data()) != 0) continue;
    for (std::uintptr_t page = 0; page * page_bytes < part; ++page) {
      if ((present[page] & 1) != 0) found += std::min(part - page * page_bytes, page_bytes);
    }
  }
  return found;
}

// The page of the last byte asked for is resident, because that byte is touched; a large block's last pages may never
// be.
std::uint64_t resident_rounding(const Slot& slot, std::uint64_t usable) {
  const auto asked_end = reinterpret_cast<std::uintptr_t>(slot.block) + slot.size;
  const auto usable_end = reinterpret_cast<std::uintptr_t>(slot.block) + usable;
  const std::uintptr_t page_end = (asked_end + page_bytes - 1) & ~(page_bytes - 1);
  if (usable_end <= page_end) return usable_end - asked_end;
  return page_end - asked_end + resident_bytes_in(page_end, usable_end);
}

}  // namespace

std::optional<Rounding> rounding_of_live_blocks(const Session& session, std::uint32_t slots,
                                                std::size_t (*usable_size)(void*)) {
  if (usable_size == nullptr) return std::nullopt;
  Rounding found;
  for (const Slot& slot : std::span(session.slots, slots)) {
    if (slot.block == nullptr) continue;
    const std::size_t usable = usable_size(slot.block);
    if (usable < slot.size) return std::nullopt;
    ++found.blocks;
    found.asked_bytes += slot.size;
    found.usable_bytes += usable;
    found.resident_bytes += resident_rounding(slot, usable);
  }
  return found;
}

Walk walk_fresh_blocks(const Session& session, std::uint32_t slots) {
  const std::span<const Slot> all(session.slots, slots);
  const auto is_fresh = [](const Slot& slot) { return slot.fresh && slot.block != nullptr && slot.size != 0; };
  const auto count = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), is_fresh));
  // The walk would be the first to read unwritten pages, and the kernel's work would be taken for cache misses.
  if (count == 0 || session.touch == Touch::nothing) return {};
  const PopulatedMemory memory(count * sizeof(Fresh));
  const std::span<Fresh> fresh(reinterpret_cast<Fresh*>(memory.begin()), count);
  std::size_t next = 0;
  for (const Slot& slot : all) {
    if (!is_fresh(slot)) continue;
    fresh[next++] = {static_cast<const char*>(slot.block), slot.done.load(std::memory_order_relaxed),
                     static_cast<std::uint32_t>(std::min(slot.size, walked_bytes))};
  }
  std::sort(fresh.begin(), fresh.end(), [](const Fresh& a, const Fresh& b) { return a.event < b.event; });
  std::array<std::uint64_t, 5> ticks{};
  for (std::uint64_t& took : ticks) took = walk(fresh);
  std::nth_element(ticks.begin(), ticks.begin() + ticks.size() / 2, ticks.end());
  return {count, static_cast<double>(ticks[ticks.size() / 2]) / session.ticks_per_ns / static_cast<double>(count)};
}

}  // namespace blockyard::replay
