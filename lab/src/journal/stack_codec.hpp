// Stacks as sections: STAK holds modules, frames and nodes added since the STAK before, SYMS the names of frames.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/planes.hpp"
#include "journal/stacks.hpp"

namespace blockyard::journal {

/// By number of the column.
using StackColumns = std::array<std::vector<std::uint64_t>, format::stack_column_slots>;

/// One thread at a time.
class StackEncoder {
 public:
  StackEncoder();

  /// The payload of a STAK with what `stacks` has beyond `written`, at most one section's worth; advances `written`.
  /// Call it until `written` equals the counts. Valid until the next call.
  const std::string& tables(const Stacks& stacks, StackCounts& written);
  /// The payload of a SYMS with the names of the frames from `frame` on, at most one section's worth; advances `frame`
  /// beyond those that it holds. Valid until the next call.
  const std::string& names(const Stacks& stacks, std::uint32_t& frame);

 private:
  void begin();
  template <typename Head>
  const std::string& finish(Head& head, std::uint8_t text_slot);

  PlaneEncoder planes_;
  StackColumns columns_;
  std::string bytes_;
  std::string payload_;
};

/// One thread at a time. Throws Error for whatever no writer produces: `where` names the file and place.
class StackDecoder {
 public:
  /// Adds a STAK's tables. After an Error `stacks` is sound and holds what precedes the fault.
  void tables(std::string_view payload, Stacks& stacks, const std::string& where);
  /// Sets a SYMS's names.
  void names(std::string_view payload, Stacks& stacks, const std::string& where);

 private:
  const std::vector<std::uint64_t>& read(std::uint8_t slot, std::uint32_t count);

  PlaneDecoder planes_;
  StackColumns columns_;
};

}  // namespace blockyard::journal
