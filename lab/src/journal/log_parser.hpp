// What the parsers of other tools' logs share. A new form is one file like aosp_log.cpp, and a row in forms.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "journal/line_scanner.hpp"
#include "journal/records.hpp"

namespace blockyard::journal {

/// Calls parse() for each line and makes records of what it reports. A log has no preamble; without times an event's
/// time is its number. The last line is left out when it has no end, since its numbers may be cut off.
class LogParser : public RecordParser {
 public:
  void next(Chunk& chunk) final;
  std::uint64_t bytes_total() const final { return lines_.input().bytes_total(); }
  bool may_miss_calls() const final { return true; }

 protected:
  LogParser(std::unique_ptr<Input> input, std::string path, std::string recorder);

  /// One line that is not empty.
  virtual void parse(Fields& line) = 0;
  /// After the last line; for more repairs.
  virtual void conclude() {}

  /// Facts of the log: those known after the first event, and at the end repairs and cut_at_end.
  Header& header();
  void repair(std::string sentence) { header().repairs.push_back(std::move(sentence)); }

  // Of the events that follow in this line:
  void on_thread(std::uint64_t id);
  /// The thread ends; its id may come again for another one.
  void end_thread(std::uint64_t id);
  void at_time(std::uint64_t ns) { time_ns_ = ns; }
  void from_site(std::uint32_t site) { site_ = site; }

  // A pointer of 0 is a call that failed, or a free of nothing; both are no events.
  void allocate(const Fields& line, std::uint64_t address, std::uint64_t size) {
    give(line, Kind::allocate, address, size, {});
  }
  void allocate_zeroed(const Fields& line, std::uint64_t address, std::uint64_t count, std::uint64_t size);
  /// `alignment` is rounded up to a power of two, as malloc's own functions do.
  void allocate_aligned(const Fields& line, std::uint64_t address, std::uint64_t alignment, std::uint64_t size);
  /// As realloc(old, size) that gave `address`: an allocation where `old` is 0, a free where `address` and `size` are.
  void reallocate(const Fields& line, std::uint64_t old, std::uint64_t address, std::uint64_t size,
                  std::uint64_t duration_ns = 0);
  void free(std::uint64_t address);
  /// A call that the form says failed; it is left out.
  void count_failed() { ++failed_; }
  /// The call stack of one caller: `address` in the file `module`, called `function` unless that is empty.
  std::uint32_t make_site(const std::string& module, std::uint64_t address, const std::string& function);

 private:
  bool has_records() const { return has_records_ || !chunk_->records.empty(); }
  void give(const Fields& line, Kind kind, std::uint64_t address, std::uint64_t size, Extra extra);
  void push(Kind kind, std::uint64_t address, std::uint64_t size, const Extra& extra);
  void end(Chunk& chunk, bool torn);
  void begin_at_first(Chunk& chunk);

  LineScanner lines_;
  Header header_;
  bool header_changed_ = true;
  Chunk* chunk_ = nullptr;
  bool has_records_ = false;
  std::unordered_map<std::uint64_t, std::uint32_t> threads_;
  std::uint64_t last_thread_id_ = 0;
  std::uint32_t thread_ = no_extra;  ///< no_extra: none yet
  std::uint64_t time_ns_ = 0;
  std::uint64_t begin_ns_ = 0;
  std::uint32_t site_ = no_site;
  std::uint64_t failed_ = 0;
  Stacks stacks_;
  std::shared_ptr<StackLines> stack_lines_;
};

}  // namespace blockyard::journal
