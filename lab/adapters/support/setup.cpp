#include "support/setup.hpp"

#include <charconv>
#include <cstring>
#include <limits>

namespace blockyard::adapters {

int fail(const by_adapter_setup& setup, std::string_view sentence) {
  if (setup.error != nullptr && setup.error_bytes > 0) {
    const size_t length = sentence.size() < setup.error_bytes ? sentence.size() : setup.error_bytes - 1;
    std::memcpy(setup.error, sentence.data(), length);
    setup.error[length] = '\0';
  }
  return 1;
}

int check_abi(const by_adapter_setup& setup) {
  if (setup.abi == BY_ADAPTER_ABI) return 0;
  return fail(setup, "the adapter was built for version " + std::to_string(BY_ADAPTER_ABI) +
                         " of the adapter ABI, the caller for version " + std::to_string(setup.abi));
}

std::optional<std::string> option(const by_adapter_setup& setup, std::string_view key) {
  std::string_view rest = setup.options;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t equals = item.find('=');
    if (item.substr(0, equals) == key && equals != std::string_view::npos) return std::string(item.substr(equals + 1));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

std::optional<uint64_t> bytes_option(const by_adapter_setup& setup, std::string_view key) {
  const std::optional<std::string> text = option(setup, key);
  if (!text) return std::nullopt;
  if (*text == "max") return std::numeric_limits<uint64_t>::max();
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
}

uint64_t bytes_for_peak(const by_adapter_setup& setup) {
  return setup.peak_bytes + setup.peak_bytes / 4 + 32 * setup.peak_blocks;
}

}  // namespace blockyard::adapters
