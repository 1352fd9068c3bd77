// Names of just-in-time compiled functions, from the map that perf reads: /tmp/perf-PID.map.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace blockyard::names {

/// Lines `START SIZE NAME`, both numbers hexadecimal. Where entries overlap, the later one of the file holds: code was
/// compiled over it. Lines that are none are skipped, as perf does.
class PerfMap {
 public:
  /// Throws journal::Error when the file can't be read.
  explicit PerfMap(const std::string& path);
  PerfMap() = default;

  /// The name of the function at an absolute address; empty when there is none.
  std::string find(std::uint64_t address) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::uint64_t begin;
    std::uint64_t end;
    std::size_t order;  ///< place in the file
    std::string name;
  };
  std::vector<Entry> entries_;  ///< by begin
  std::uint64_t longest_ = 0;   ///< bytes of the longest entry: how far back an entry that holds an address may begin
};

}  // namespace blockyard::names
