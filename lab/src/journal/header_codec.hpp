// The header as fields: HEAD and FOOT hold all of it, TABL what changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "journal/event.hpp"
#include "journal/format.hpp"

namespace blockyard::journal {

/// What a footer holds in addition to the header.
struct Totals {
  std::uint64_t events = 0;
  std::uint64_t blocks = 0;
};

/// All fields of `header`.
void put_header(std::string& out, const Header& header);

/// What has changed from `written` to `now`: facts, new threads and names, renamed threads. Empty when nothing has.
std::string header_changes(const Header& written, const Header& now);

/// Where a footer says that sections begin.
struct Index {
  std::vector<format::IndexEntry> blocks;
  std::vector<std::uint64_t> stacks;  ///< STAK and SYMS
};

/// Applies fields to `header` (threads and names are appended), and fills totals and index from a footer's. `where`
/// names the file and place in the Error that malformed fields throw.
void apply_fields(std::string_view fields, Header& header, Totals* totals, Index* index, const std::string& where);

}  // namespace blockyard::journal
