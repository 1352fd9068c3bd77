// Reads the text form: puts lines in order within a bounded window and turns pointers into dense blocks.
#pragma once

#include <array>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/flat_map.hpp"
#include "journal/reader.hpp"
#include "journal/text_parser.hpp"

namespace blockyard::journal {

/// Lines that threads wrote out of order are reordered:
/// - Lines whose time goes back, by at most 262,144 lines, are sorted by time; lines of equal time keep their order. A
///   thread may lose the processor for milliseconds between the reading of its clock and the writing of its line.
/// - An allocation at an address that is still live pulls forward its free by another thread, by at most 16,384 lines.
/// - A free of an address that is not live pulls forward its allocation by another thread, by as many.
/// notes() counts each of these at the end. What remains is an Error with its line and event number.
///
/// An event whose lines are cut off at the text's end, as where a program crashed, is left out: notes() says so, and
/// header().cut_at_end is set.
///
/// The leading allocations at NS 0 are the preamble, unless a `# preamble N` line says otherwise. Its length is known
/// no later than the first event after it: an event is preamble when its number is below header().preamble_events
/// *after* next() returned it.
class TextSource final : public Source {
 public:
  /// Lines read ahead; twice as many are held, 48 bytes each.
  static constexpr std::size_t window_lines = 16 * TextParser::chunk_records;
  static constexpr std::size_t pulled_lines = TextParser::chunk_records;

  TextSource(std::unique_ptr<Input> input, const std::string& path);
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;

  const Header& header() const override { return header_; }
  const Stacks& stacks() const override { return stacks_; }
  std::span<const Event> next() override;
  std::uint64_t bytes_read() const override { return bytes_read_; }
  std::uint64_t bytes_total() const override { return bytes_total_; }
  std::span<const std::string> notes() const override { return notes_; }

  /// Whether the text's own # lines want its addresses kept in a .byj.
  bool asks_for_addresses() const { return annotated_addresses_; }
  /// Whether a `# preamble` line gave its length; otherwise it grows while the leading lines are read.
  bool says_preamble() const { return preamble_said_; }

 private:
  [[noreturn]] void fail(const Record& record, const std::string& what) const;
  void parse_ahead();
  bool refill();
  void append(const Chunk& chunk);
  void emit(Record& record, std::size_t index, int depth);
  std::uint64_t take_block(const Record& record, std::size_t index, std::uint64_t address, int depth);
  void give_block(const Record& record, std::size_t index, int depth);
  bool pull_forward(const Record& record, std::size_t index, std::uint64_t address, bool wanted_free, int depth);
  void conclude();

  std::string path_;
  std::uint64_t bytes_total_;
  std::uint64_t bytes_read_ = 0;
  TextParser parser_;
  std::array<Chunk, 2> chunks_;  ///< in turn: one is parsed while the other is used
  std::size_t parsed_ = 0;       ///< including the one ahead
  Header header_;
  Stacks stacks_;
  bool annotated_addresses_ = false;
  bool preamble_said_ = false;
  bool in_preamble_ = true;
  std::uint64_t preamble_ = 0;

  std::vector<Record> window_;
  std::size_t cursor_ = 0;  ///< next record to emit
  std::size_t ready_ = 0;   ///< records before this have window_lines after them, or the end
  bool read_all_ = false;
  bool concluded_ = false;
  bool torn_ = false;
  bool cut_ = false;
  std::vector<Extra> extras_;
  std::vector<std::uint32_t> free_extras_;
  std::uint64_t latest_ns_ = 0;  ///< of all records read

  FlatMap<std::uint64_t> blocks_;  ///< live address -> block
  std::uint64_t next_block_ = 0;
  std::uint64_t time_ns_ = 0;
  std::uint64_t events_before_ = 0;  ///< events that earlier calls returned
  std::vector<Event> events_;
  std::uint64_t times_back_ = 0;
  std::uint64_t frees_pulled_ = 0;
  std::uint64_t allocations_pulled_ = 0;
  std::vector<std::string> notes_;
  std::future<void> ahead_;  ///< parses the next chunk; last, as its end waits for that
};

/// Whether a file that starts with these bytes may be a text journal: an event, a comment or an empty line.
bool looks_like_text(std::string_view first_bytes);

/// Whether a .byj that is written from `source` keeps addresses unless somebody says otherwise.
bool keeps_addresses(const Source& source);

}  // namespace blockyard::journal
