// Settings that the environment has.
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/process.hpp"
#include "base/say.hpp"

namespace blockyard::base {
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

}  // namespace

bool read_number(const char* name, std::uint64_t least, std::uint64_t most, std::uint64_t* value) {
  const char* const text = environment(name);
  if (text == nullptr || *text == '\0') {
    return false;
  }
  std::uint64_t number = 0;
  if (!parse(text, &number) || number < least || number > most) {
    say("blockyard: %s=%.64s is not a number from %llu to %llu; the default stays\n", name, text,
        static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
    return false;
  }
  *value = number;
  return true;
}

}  // namespace blockyard::base
