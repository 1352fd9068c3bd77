// Writes a .byj journal: takes events in journal order and writes compressed blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "journal/event.hpp"
#include "journal/stacks.hpp"

namespace blockyard::journal {

/// One writer per file, one thread at a time. What was flushed is readable even when finish() never runs. Every member
/// may throw Error (a full disk, an unwritable path).
class Writer {
 public:
  /// Creates `path` (never over an existing file unless `overwrite`); header.threads and names may be empty and grow.
  /// When `path` is only a temporary name, errors name `shown` and do not promise that what was flushed is readable.
  Writer(const std::string& path, const Header& header, bool overwrite = false, const std::string& shown = {});
  ~Writer();  ///< finishes if finish() was not called, and then swallows errors
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// A new thread's index. Must precede the first event that uses it.
  std::uint32_t add_thread(const Thread& thread);
  /// Names or renames a thread.
  void name_thread(std::uint32_t index, const std::string& name);
  /// Index of a phase's or tag's name, added when new.
  std::uint32_t intern_name(const std::string& name);

  /// The call stacks. What is added is written before the events that need it; names are written by finish(), so they
  /// may be set at any time. The first stack or tag makes the file a journal of version 2, which only a file can
  /// become, no pipe.
  Stacks& stacks();

  /// Appends an event. Its site must be a node of stacks(), its tag the index of a name. If its kind gives a block,
  /// `event.block` must be the next dense id; time must not fall.
  void add(const Event& event);
  /// Ends the current block so that everything added so far survives a crash.
  void flush();
  /// Preamble length, clock calibration and cut_at_end may become known late: they go into the footer.
  Header& header();
  /// Writes the footer index and closes the file. Returns its size in bytes.
  std::uint64_t finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace blockyard::journal
