// Writes events in the text form; what the form can't say goes into # lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "journal/event.hpp"
#include "journal/flat_map.hpp"
#include "journal/output_file.hpp"
#include "journal/stacks.hpp"

namespace blockyard::journal {

struct TextStyle {
  bool notes = true;           ///< false: only `a` and `f` lines; a realloc is a free and an allocation
  bool preamble_known = true;  ///< false: a reader finds its length from the leading lines at NS 0
};

/// One thread at a time. Pointers are the journal's own where it keeps them; otherwise they are made up, unique for
/// each block.
class TextWriter {
 public:
  /// `stacks` grows before the events that need it, and must outlive the writer.
  TextWriter(std::unique_ptr<ByteSink> sink, const Header& header, const Stacks& stacks, TextStyle style);
  /// `header` is the source's current one: threads and names may have grown.
  void add(const Event& event, const Header& header);
  /// `header` is complete now: what differs from the written one goes to the end.
  void finish(const Header& header);

 private:
  void introduce(const Header& header);
  void introduce_stacks();
  void note_names();
  void note_thread(std::size_t index, const Thread& thread);
  void put_line(char kind, std::uint64_t size, std::uint64_t address, std::uint32_t thread, std::uint64_t time_ns);
  void put_number(std::uint64_t value);
  void put_hex(std::uint64_t value);
  void note(std::string_view keyword, std::string_view text);
  void note(std::string_view keyword, std::uint64_t value);
  void end_line();
  void mark(const Event& event);
  std::uint64_t given_address(const Event& event);
  std::uint64_t taken_address(std::uint64_t block);

  std::unique_ptr<ByteSink> sink_;
  const Stacks& stacks_;
  StackCounts stacks_written_;
  TextStyle style_;
  bool has_addresses_;
  std::vector<std::uint64_t> thread_ids_;       ///< the id of each thread in lines
  std::unordered_set<std::uint64_t> used_ids_;  ///< kernels reuse thread ids; lines must not
  std::vector<std::string> thread_names_;       ///< as written
  std::size_t names_ = 1;
  std::uint64_t preamble_ = 0;        ///< as written
  bool cut_at_end_ = false;           ///< as written
  FlatMap<std::uint64_t> addresses_;  ///< block + 1 -> its address, while it lives
  std::string text_;
};

}  // namespace blockyard::journal
