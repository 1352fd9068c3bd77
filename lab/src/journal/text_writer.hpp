// Writes events in the text form; what the form can't say goes into # lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/event.hpp"
#include "journal/output_file.hpp"
#include "journal/stacks.hpp"
#include "journal/written_pointers.hpp"

namespace blockyard::journal {

struct TextStyle {
  bool notes = true;           ///< false: only `a` and `f` lines; a realloc is a free and an allocation
  bool preamble_known = true;  ///< false: a reader finds its length from the leading lines at NS 0
};

/// Writes events as text of some form. One thread at a time; throws Error.
class EventWriter {
 public:
  virtual ~EventWriter() = default;
  /// `header` is the source's current one: threads and names may have grown.
  virtual void add(const Event& event, const Header& header) = 0;
  /// `header` is complete now. Adds to `notes` a sentence about what the form can't say.
  virtual void finish(const Header& header, std::vector<std::string>& notes) = 0;
};

/// Pointers are the journal's own where it keeps them; otherwise they are made up, unique for
/// each block.
class TextWriter final : public EventWriter {
 public:
  /// `stacks` grows before the events that need it, and must outlive the writer.
  TextWriter(std::unique_ptr<ByteSink> sink, const Header& header, const Stacks& stacks, TextStyle style);
  void add(const Event& event, const Header& header) override;
  /// What differs from the written header goes to the end.
  void finish(const Header& header, std::vector<std::string>& notes) override;

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
  void note_repairs(const Header& header);
  void end_line();
  void mark(const Event& event);

  std::unique_ptr<ByteSink> sink_;
  const Stacks& stacks_;
  StackCounts stacks_written_;
  TextStyle style_;
  WrittenPointers pointers_;
  WrittenThreads threads_;
  std::vector<std::string> thread_names_;  ///< as written
  std::size_t names_ = 1;
  std::size_t repairs_ = 0;     ///< written
  std::uint64_t preamble_ = 0;  ///< as written
  bool cut_at_end_ = false;     ///< as written
  std::string text_;
};

}  // namespace blockyard::journal
