// Settings that the environment has.
#include <charconv>
#include <string_view>

#include "base/process.hpp"
#include "base/say.hpp"

namespace blockyard::base {
namespace {

// A number with an optional K, M or G; none when the text is anything else.
std::optional<std::uint64_t> parse(std::string_view text) {
  constexpr std::string_view units = "kKmMgG";
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view behind(end, text.data() + text.size());
  const std::size_t unit = behind.empty() ? 0 : units.find(behind);
  const unsigned shift = behind.empty() ? 0 : 10 * static_cast<unsigned>(unit / 2 + 1);
  if (error != std::errc() || behind.size() > 1 || unit == std::string_view::npos ||
      (number << shift) >> shift != number) {
    return {};
  }
  return number << shift;
}

}  // namespace

std::optional<std::uint64_t> read_number(const char* name, std::uint64_t least, std::uint64_t most) {
  const char* const text = environment(name);
  if (text == nullptr || *text == '\0') {
    return {};
  }
  const std::optional<std::uint64_t> number = parse(text);
  if (!number || *number < least || *number > most) {
    say("blockyard: %s=%.64s is not a number from %llu to %llu; the default stays\n", name, text,
        static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
    return {};
  }
  return number;
}

}  // namespace blockyard::base
