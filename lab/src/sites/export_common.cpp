#include <algorithm>

#include "sites/export.hpp"

namespace blockyard::sites {
namespace {

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) {
      return at < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[at])) : 0U;
    };
    const unsigned first = byte(i);
    const std::size_t length = first < 0x80                    ? 1
                               : first >= 0xC2 && first < 0xE0 ? 2
                               : first >= 0xE0 && first < 0xF0 ? 3
                               : first >= 0xF0 && first < 0xF5 ? 4
                                                               : 0;
    if (length == 0) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    }
    const unsigned second = byte(i + 1);
    // Longer forms of short characters, surrogates, and what lies beyond U+10FFFF.
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) || (first == 0xF0 && second < 0x90) ||
        (first == 0xF4 && second >= 0x90)) {
      return false;
    }
    i += length;
  }
  return true;
}

}  // namespace

std::string utf8(std::string_view text) {
  std::string out(text);
  if (is_utf8(text)) return out;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return out;
}

std::uint64_t weight_of(const Totals& totals, Weight weight) {
  constexpr std::uint64_t Totals::*by_weight[] = {&Totals::allocations, &Totals::bytes, &Totals::end_blocks,
                                                  &Totals::end_bytes};
  return totals.*by_weight[static_cast<std::size_t>(weight)];
}

}  // namespace blockyard::sites
