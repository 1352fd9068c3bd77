// Imports recordings of KDE's heaptrack: raw ones (PROGRAM.raw.zst) and interpreted ones (PROGRAM.zst or .gz).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/flat_map.hpp"
#include "journal/line_scanner.hpp"
#include "journal/reader.hpp"

namespace blockyard::journal {

/// heaptrack keeps no threads, no alignment and no kind of call, and a time only every 10 ms. All events are plain
/// allocations and frees of one thread, and the journal is not paced: an event's time is heaptrack's last time stamp
/// plus a nanosecond for each event since.
///
/// Allocations keep their call stacks; frees have none. The interpreted form names functions, files and lines, the raw
/// one has addresses in modules.
///
/// The raw form names pointers. The interpreted form names only the kind of a freed block (its size and call stack):
/// the youngest live block of that kind is taken. What heaptrack missed is counted in notes(): a free of a block it
/// never saw is left out, and a block whose free it never saw ends when its address is given again. A last line without
/// an end is cut off, and left out.
class HeaptrackSource final : public Source {
 public:
  HeaptrackSource(std::unique_ptr<Input> input, const std::string& path);

  const Header& header() const override { return header_; }
  const Stacks& stacks() const override { return stacks_; }
  std::span<const Event> next() override;
  std::uint64_t bytes_read() const override { return lines_.input().bytes_read(); }
  std::uint64_t bytes_total() const override { return lines_.input().bytes_total(); }
  std::span<const std::string> notes() const override { return notes_; }
  std::string_view form() const override { return "heaptrack"; }

 private:
  struct AllocationKind {
    std::uint64_t size = 0;
    std::uint32_t site = no_site;
    std::vector<std::uint64_t> live;  ///< blocks, youngest last
  };
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t module;
  };
  void fail(std::string_view line, const char* what) const;
  void refuse_beyond_any_process(std::uint64_t size, std::string_view line) const;
  void read_line(std::string_view line);
  void allocate(std::string_view fields, std::string_view line);
  void release(std::string_view fields, std::string_view line);
  std::uint64_t push(Kind kind, std::uint64_t size, std::uint64_t block, std::uint64_t address, std::uint32_t site);
  void read_module(std::string_view fields);
  void read_address(std::string_view fields);
  void read_trace(std::string_view fields);
  std::uint32_t frame_of(std::uint64_t address);
  std::uint32_t site_of(std::uint64_t trace);
  bool next_line(std::string_view& line);
  void note(std::string sentence);
  void conclude();

  std::string path_;
  LineScanner lines_;
  Header header_;
  Stacks stacks_;
  std::vector<AllocationKind> kinds_;  ///< the interpreted form's `a` lines
  FlatMap<std::uint64_t> addresses_;   ///< the raw form's live addresses -> block
  std::string executable_;
  std::uint64_t file_version_ = 0;
  std::vector<std::string> strings_;           ///< the interpreted form's; numbers count from 1
  std::vector<std::uint32_t> frames_;          ///< of the interpreted form's addresses, which count from 1
  std::vector<std::uint32_t> string_modules_;  ///< the module that each string names, or no_module
  std::vector<std::uint32_t> sites_;           ///< of traces, which count from 1
  std::vector<Range> ranges_;                  ///< where the raw form's modules are mapped
  std::uint64_t lost_stacks_ = 0;
  std::uint64_t next_block_ = 0;
  std::uint64_t time_ns_ = 0;
  std::uint64_t unseen_allocations_ = 0;
  std::uint64_t unseen_frees_ = 0;
  bool in_command_ = false;  ///< in the lines after an X line: a program's arguments may hold line ends
  bool primed_ = true;       ///< events_ holds what the constructor read after the header
  bool concluded_ = false;
  bool torn_ = false;
  std::vector<Event> events_;
  std::vector<std::string> notes_;
};

}  // namespace blockyard::journal
