// Collects up to 65,536 events as columns and encodes them as one block's payload.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "journal/event.hpp"
#include "journal/format.hpp"
#include "journal/planes.hpp"

namespace blockyard::journal {

/// One thread at a time. The caller checks that the events are valid.
class BlockEncoder {
 public:
  BlockEncoder();

  /// Empties the columns; the next event is number `first_event`, the next block given is `first_block`.
  void begin(std::uint64_t first_event, std::uint64_t first_block, std::uint64_t base_time_ns);
  /// Takes about 5 ns and never asks the operating system. full() must be false.
  void add(const Event& event, bool keep_address);
  bool empty() const { return events_ == 0; }
  bool full() const { return events_ == format::block_events; }
  const format::BlockHead& head() const { return head_; }
  /// Encodes everything added since begin() as payload(). About 15 ns an event.
  void encode();
  /// What encode() made last; valid until it is called again.
  const std::string& payload() const { return payload_; }

 private:
  struct Values {
    std::unique_ptr<std::uint64_t[]> values;
    std::uint32_t count = 0;
  };
  Values& column(format::Column column) { return columns_[static_cast<std::size_t>(column)]; }
  void push(format::Column to, std::uint64_t value) {
    Values& values = column(to);
    values.values[values.count++] = value;
  }
  void push_sparse(format::Column to, std::uint64_t value);
  void put_sites();

  std::array<Values, format::column_slots> columns_;
  format::BlockHead head_{};
  std::uint32_t events_ = 0;
  std::uint64_t next_block_ = 0;
  std::uint64_t last_time_ns_ = 0;
  std::uint64_t last_address_ = 0;
  PlaneEncoder planes_;
  std::vector<std::uint64_t> sites_;           ///< in the file's order
  std::vector<std::uint32_t> site_of_thread_;  ///< where each thread's next site goes
  std::string payload_;
};

}  // namespace blockyard::journal
