// The events of every form that names pointers: puts records in order within a bounded window and turns their pointers
// into dense blocks.
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
#include "journal/records.hpp"

namespace blockyard::journal {

/// Lines that threads wrote out of order are reordered:
/// - Lines whose time goes back, by at most 262,144 lines, are sorted by time; lines of equal time keep their order. A
///   thread may lose the processor for milliseconds between the reading of its clock and the writing of its line.
/// - An allocation at an address that is still live pulls forward its free by another thread, by at most 16,384 lines.
/// - A free of an address that is not live pulls forward its allocation by another thread, by as many.
/// What remains is an Error with its line and event number, unless the form's writer may miss calls: then
/// - a free of an address that is not live is left out, and a realloc of one is an allocation;
/// - a block whose address is allocated again is freed just before. Its free is pulled forward only where no other
///   allocation of the address follows it, and from any line where threads are unknown.
/// notes() and header().repairs count each of these at the end.
///
/// An event whose lines are cut off at the text's end, as where a program crashed, is left out: notes() says so, and
/// header().cut_at_end is set.
///
/// The leading allocations of a text at NS 0 are the preamble, unless a `# preamble N` line says otherwise. Its length
/// is known no later than the first event after it: an event is preamble when its number is below
/// header().preamble_events *after* next() returned it.
class RecordSource final : public Source {
 public:
  /// Lines read ahead; twice as many are held, 48 bytes each.
  static constexpr std::size_t window_lines = 16 * RecordParser::chunk_records;
  static constexpr std::size_t pulled_lines = RecordParser::chunk_records;

  /// `form` is a constant; `path` is for messages.
  RecordSource(std::unique_ptr<RecordParser> parser, std::string path, std::string_view form);
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;

  const Header& header() const override { return header_; }
  const Stacks& stacks() const override { return stacks_; }
  std::span<const Event> next() override;
  std::uint64_t bytes_read() const override { return bytes_read_; }
  std::uint64_t bytes_total() const override { return parser_->bytes_total(); }
  std::string_view form() const override { return form_; }
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
  bool take_block(const Record& record, std::size_t index, std::uint64_t address, int depth, std::uint64_t& block);
  void give_block(const Record& record, std::size_t index, int depth);
  bool takes(const Record& record, std::uint64_t address) const;
  std::size_t next_of(std::size_t index, std::uint64_t address) const;
  bool pull_forward(const Record& record, std::size_t index, std::uint64_t address, bool wanted_free, int depth);
  void conclude();
  void note(std::string sentence);
  void count(std::uint64_t times, const char* one, const char* many, const std::string& rest);

  std::unique_ptr<RecordParser> parser_;
  std::string path_;
  std::string_view form_;
  bool may_miss_calls_;
  std::uint64_t bytes_read_ = 0;
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
  std::uint64_t unseen_allocations_ = 0;
  std::uint64_t unseen_frees_ = 0;
  std::vector<std::string> notes_;
  std::future<void> ahead_;  ///< parses the next chunk; last, as its end waits for that
};

/// Whether a .byj that is written from `source` keeps addresses unless somebody says otherwise.
bool keeps_addresses(const Source& source);

}  // namespace blockyard::journal
