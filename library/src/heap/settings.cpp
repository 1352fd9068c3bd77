#include "heap/settings.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/process.hpp"
#include "base/say.hpp"
#include "blockyard/heap.h"

namespace blockyard::heap {

constinit Settings settings;

namespace {

// A number with an optional K, M or G; false when the text is anything else.
bool parse(const char* text, std::uint64_t* value) {
  char* end = nullptr;
  errno = 0;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  if (end == text || errno != 0 || *text == '-') {
    return false;
  }
  constexpr std::string_view units = "kKmMgG";
  const std::size_t unit = units.find(*end);
  const unsigned shift = unit == std::string_view::npos ? 0 : 10 * static_cast<unsigned>(unit / 2 + 1);
  end += shift != 0 ? 1 : 0;
  if (*end != '\0' || (number << shift) >> shift != number) {
    return false;
  }
  *value = number << shift;
  return true;
}

struct Range {
  const char* name;
  std::uint64_t least;
  std::uint64_t most;
  Setting<std::uint64_t> Settings::*setting = nullptr;
  const char* shown = nullptr;  // behind its value
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

// The value of an environment variable; false where there is none, or none that serves, which is said.
bool read_number(const Range& range, std::uint64_t* value) {
  const char* const text = base::environment(range.name);
  if (text == nullptr || *text == '\0') {
    return false;
  }
  if (!parse(text, value) || *value < range.least || *value > range.most) {
    base::say("blockyard: %s=%.64s is not a number from %llu to %llu; the default stays\n", range.name, text,
              static_cast<unsigned long long>(range.least), static_cast<unsigned long long>(range.most));
    return false;
  }
  return true;
}

void show_settings() {
  char text[1024];
  int length = std::snprintf(text, sizeof text, "blockyard: heap settings\n");
  for (const Range& range : ranges) {
    const auto at = static_cast<std::size_t>(length);
    length += std::snprintf(text + at, sizeof text - at, "  %s=%llu%s\n", range.name,
                            static_cast<unsigned long long>(settings.*range.setting), range.shown);
  }
  base::say("%s", text);
}

}  // namespace

void read_settings() {
  std::uint64_t value = 0;
  for (std::size_t which = 0; which < ranges.size(); ++which) {
    if (read_number(ranges[which], &value)) {
      set_setting(which, value);
    }
  }
#if !BLOCKYARD_CHECKED
  if (read_number({"BLOCKYARD_HEAP_GUARD", 0, 1}, &value)) {
    settings.guard = value != 0;
  }
  if (read_number({"BLOCKYARD_HEAP_GUARD_SAMPLE", 0, 1'000'000'000}, &value)) {
    settings.guard_sample = static_cast<std::uint32_t>(value);
  }
#endif
  if (read_number({"BLOCKYARD_HEAP_SHOW", 0, 1}, &value) && value != 0) {
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
