#include "heap/settings.hpp"

#include <array>

#include "base/process.hpp"
#include "base/say.hpp"
#include "blockyard/heap.h"

namespace blockyard::heap {

constinit Settings settings;

namespace {

struct Range {
  const char* name;
  std::uint64_t least;
  std::uint64_t most;
  Relaxed<std::uint64_t> Settings::*setting;
  const char* shown;  // behind its value
};

// In the order of by_heap_setting.
constexpr std::array<Range, 6> ranges{{
    {"BLOCKYARD_HEAP_RESERVE", 0, std::uint64_t{64} << 30, &Settings::reserve_bytes,
     "      bytes kept populated and waiting"},
    {"BLOCKYARD_HEAP_READY_SLABS", 0, 65'536, &Settings::ready_slabs, "   slabs of 16 KiB cut in advance"},
    {"BLOCKYARD_HEAP_PERIOD", 50, 1'000'000, &Settings::period_us,
     "        microseconds between the background thread's rounds"},
    {"BLOCKYARD_HEAP_PURGE", 0, 1'000'000, &Settings::purge_ms,
     "         milliseconds that free memory is not needed before it is given back"},
    {"BLOCKYARD_HEAP_JANITOR", 0, 1, &Settings::janitor,
     "       1: a background thread works ahead, 0: by_heap_frame_end does its work"},
    {"BLOCKYARD_HEAP_HUGE_PAGES", 0, 1, &Settings::huge_pages,
     "    1: ask for transparent huge pages, 0: for small ones"},
}};
static_assert(ranges.size() == BY_HEAP_HUGE_PAGES + 1);

void show_settings() {
  base::say("blockyard: heap settings\n");
  for (const Range& range : ranges) {
    base::say("  %s=%llu%s\n", range.name, static_cast<unsigned long long>(settings.*range.setting), range.shown);
  }
  base::say(
      "  BLOCKYARD_HEAP_GUARD=%d         1: looks for misuse\n"
      "  BLOCKYARD_HEAP_GUARD_SAMPLE=%u  so many blocks, one of them in pages of its own; 0: none\n",
      bool{settings.guard}, static_cast<unsigned>(settings.guard_sample));
}

}  // namespace

void read_settings() {
  for (std::size_t which = 0; which < ranges.size(); ++which) {
    const Range& range = ranges[which];
    if (const auto value = base::read_number(range.name, range.least, range.most)) {
      set_setting(which, *value);
    }
  }
#if !BLOCKYARD_CHECKED
  settings.guard = base::read_number("BLOCKYARD_HEAP_GUARD", 0, 1) == 1;
#endif
  settings.guard_sample = static_cast<std::uint32_t>(
      base::read_number("BLOCKYARD_HEAP_GUARD_SAMPLE", 0, 1'000'000'000).value_or(settings.guard_sample));
  if (base::read_number("BLOCKYARD_HEAP_SHOW", 0, 1) == 1) {
    show_settings();
  }
}

bool is_in_range(std::size_t which, std::uint64_t value) {
  return which < ranges.size() && value >= ranges[which].least && value <= ranges[which].most;
}

void set_setting(std::size_t which, std::uint64_t value) {
  settings.*ranges[which].setting = value;
  if (which == BY_HEAP_RESERVE) {
    settings.reserve_is_set = true;
  }
}

std::uint64_t get_setting(std::size_t which) {
  return which < ranges.size() ? std::uint64_t{settings.*ranges[which].setting} : 0;
}

}  // namespace blockyard::heap
