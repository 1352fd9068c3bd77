#include "names/perf_map.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "journal/input.hpp"
#include "journal/line_scanner.hpp"
#include "names/demangle.hpp"

namespace blockyard::names {
namespace {

/// Takes a hexadecimal number and the blanks after it off the line; false when there is none.
bool take_hex(std::string_view& line, std::uint64_t& value) {
  if (line.starts_with("0x")) line.remove_prefix(2);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return true;
}

}  // namespace

PerfMap::PerfMap(const std::string& path) {
  journal::LineScanner lines(journal::open_input(path), path);
  for (std::string_view line; lines.next(line);) {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    if (!take_hex(line, begin) || !take_hex(line, size) || line.empty() || size == 0 || begin + size < begin) continue;
    entries_.push_back({begin, begin + size, entries_.size(), demangle(line)});
    longest_ = std::max(longest_, size);
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
}

std::string PerfMap::find(std::uint64_t address) const {
  auto at = std::upper_bound(entries_.begin(), entries_.end(), address,
                             [](std::uint64_t wanted, const Entry& entry) { return wanted < entry.begin; });
  const Entry* found = nullptr;
  while (at != entries_.begin()) {
    --at;
    if (address - at->begin >= longest_) break;
    if (address < at->end && (found == nullptr || at->order > found->order)) found = &*at;
  }
  return found == nullptr ? std::string() : found->name;
}

}  // namespace blockyard::names
