#include "heap/settings.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace blockyard::heap {

constinit Settings settings;

namespace {

// Writes without stdio: the first allocation may come before the C library's streams are ready.
void say(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

// A number with an optional K, M or G; false when the text is anything else.
bool parse(const char* text, std::uint64_t* value) {
  char* end = nullptr;
  errno = 0;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  if (end == text || errno != 0 || *text == '-') {
    return false;
  }
  unsigned shift = 0;
  switch (*end) {
    case 'k':
    case 'K':
      shift = 10;
      ++end;
      break;
    case 'm':
    case 'M':
      shift = 20;
      ++end;
      break;
    case 'g':
    case 'G':
      shift = 30;
      ++end;
      break;
    default:
      break;
  }
  if (*end != '\0' || (number << shift) >> shift != number) {
    return false;
  }
  *value = number << shift;
  return true;
}

template <class Number>
void read_number(const char* name, std::uint64_t least, std::uint64_t most, Number* place) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') {
    return;
  }
  std::uint64_t value = 0;
  if (!parse(text, &value) || value < least || value > most) {
    char line[256];
    std::snprintf(line, sizeof line, "blockyard: %s=%.64s is not a number from %llu to %llu; the default stays\n", name,
                  text, static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
    say(line);
    return;
  }
  *place = static_cast<Number>(value);
}

}  // namespace

void read_settings() {
  read_number("BLOCKYARD_HEAP_RESERVE", 0, std::uint64_t{64} << 30, &settings.reserve_bytes);
  read_number("BLOCKYARD_HEAP_READY_SLABS", 0, 65536, &settings.ready_slabs);
  read_number("BLOCKYARD_HEAP_PERIOD", 50, 1'000'000, &settings.period_us);
  read_number("BLOCKYARD_HEAP_PURGE", 0, 1'000'000, &settings.purge_ms);
  read_number("BLOCKYARD_HEAP_JANITOR", 0, 1, &settings.janitor);
  read_number("BLOCKYARD_HEAP_HUGE_PAGES", 0, 1, &settings.huge_pages);
  read_number("BLOCKYARD_HEAP_SHOW", 0, 1, &settings.show);
  if (settings.show) {
    show_settings();
  }
}

void show_settings() {
  char text[640];
  std::snprintf(text, sizeof text,
                "blockyard: heap settings\n"
                "  BLOCKYARD_HEAP_RESERVE=%zu      bytes kept populated and waiting\n"
                "  BLOCKYARD_HEAP_READY_SLABS=%u   slabs of 16 KiB cut in advance, part of the reserve\n"
                "  BLOCKYARD_HEAP_PERIOD=%u        microseconds between the janitor's rounds\n"
                "  BLOCKYARD_HEAP_PURGE=%u         milliseconds that free memory waits before it is given back\n"
                "  BLOCKYARD_HEAP_JANITOR=%d       0: by_frame_end does the janitor's work\n"
                "  BLOCKYARD_HEAP_HUGE_PAGES=%d    1: ask for transparent huge pages\n",
                settings.reserve_bytes, settings.ready_slabs, settings.period_us, settings.purge_ms,
                settings.janitor ? 1 : 0, settings.huge_pages ? 1 : 0);
  say(text);
}

}  // namespace blockyard::heap
