// Decodes one block's payload back into events.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "journal/event.hpp"
#include "journal/format.hpp"
#include "journal/planes.hpp"

namespace blockyard::journal {

/// One thread at a time. Throws Error for whatever no writer produces: a damaged file with forged checksums can't make
/// a reader misbehave either.
class BlockDecoder {
 public:
  BlockDecoder();

  /// `sites` is how many call stacks are known; events lose others when `forgive_sites`, else they are refused. `where`
  /// names the file and the block's place in errors.
  void decode(std::string_view payload, const Header& header, std::uint32_t sites, bool forgive_sites,
              const std::string& where);
  const format::BlockHead& head() const { return head_; }
  /// The next events of the block, at most a few thousand so that they stay in the cache; empty at its end.
  std::span<const Event> next();
  /// After next() returned empty: the time of the block's last event, and the id of the next block that an event gives.
  std::uint64_t end_time_ns() const { return time_ns_; }
  std::uint64_t end_block() const { return next_block_; }

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void read(format::Column column, std::uint32_t count);
  void read_sites();
  std::uint64_t take(format::Column column) {
    const auto slot = static_cast<std::size_t>(column);
    return present_[slot] ? columns_[slot][at_[slot]++] : 0;
  }

  std::string where_;
  format::BlockHead head_{};
  std::array<std::vector<std::uint64_t>, format::column_slots> columns_;
  std::array<std::uint32_t, format::column_slots> at_{};
  std::array<bool, format::column_slots> present_{};
  std::uint32_t done_ = 0;
  std::uint64_t time_ns_ = 0;
  std::uint64_t next_block_ = 0;
  std::uint64_t address_ = 0;
  std::size_t threads_ = 0;
  std::size_t names_ = 0;
  std::uint32_t sites_ = 0;
  bool forgive_sites_ = false;
  bool has_addresses_ = false;
  PlaneDecoder planes_;
  std::vector<std::uint32_t> site_of_thread_;  ///< where each thread's next site stands
  std::vector<Event> events_;
};

}  // namespace blockyard::journal
