// One address space's journals: a file for each window, written while the merge goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "journal/stack_copy.hpp"
#include "journal/writer.hpp"
#include "record/collect/live_blocks.hpp"
#include "record/collect/tag_book.hpp"

namespace blockyard::record {

struct ThreadFacts {
  std::uint64_t tid = 0;
  std::string name;
};

/// What is the same for all journals of one process image.
struct OutputSettings {
  std::string path;  ///< of the first window; the n-th goes to STEM-n.byj
  bool overwrite = false;
  double ns_per_stamp = 1;
  journal::Header header;                   ///< program, command, machine, ...; threads are added as they appear
  std::shared_ptr<journal::Stacks> stacks;  ///< of all images of the recording; sites are its nodes
  std::shared_ptr<TagTexts> tags;           ///< the same for tags
  std::function<std::vector<std::string>()> unseen;  ///< what the header says of it when a window closes; may be empty
};

/// The result of one journal, for the summary.
struct JournalSummary {
  std::string path;
  std::uint64_t events = 0;
  std::uint64_t preamble = 0;
  std::uint64_t allocations = 0;  ///< events that gave a block: of a reallocate, its new one
  std::uint64_t frees = 0;        ///< events that ended one: of a reallocate, its old one
  std::uint64_t reallocates = 0;  ///< counted in both
  std::uint64_t frames = 0;
  std::uint64_t threads = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::string error;  ///< why it is incomplete; empty when it is complete
};

/// Not thread-safe. A write error ends the journal and is kept in its summary; nothing throws.
class Output {
 public:
  /// `threads` is the session's list; it may grow, and must outlive this.
  Output(OutputSettings settings, const std::vector<ThreadFacts>& threads);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool is_open() const { return writer_ != nullptr; }
  /// Begins a journal whose time 0 is `stamp`, with a preamble of the blocks alive.
  void open_window(std::uint64_t stamp, LiveBlocks& live);
  /// `stopped`: the recording stopped before the program, so live blocks are no leak.
  void close_window(std::uint64_t stamp, bool stopped);

  /// The block's id in the open journal.
  std::uint64_t allocate(std::uint64_t stamp, std::uint64_t address, const LiveBlock& block);
  void free(std::uint64_t stamp, std::uint32_t thread, std::uint64_t id, Origin origin);
  /// `begin` and `end` are the stamps around the call.
  std::uint64_t reallocate(std::uint64_t begin, std::uint64_t end, std::uint64_t old_id, std::uint64_t address,
                           const LiveBlock& block);
  void frame_mark(std::uint64_t stamp, std::uint32_t thread);
  void phase_mark(std::uint64_t stamp, std::uint32_t thread, const std::string& name);
  void thread_renamed(std::uint32_t thread);
  /// The journal names this path of tags even where no event has it.
  void tag_met(std::uint32_t tag);

  /// Makes everything written so far survive a crash of the collector.
  void flush();
  const std::vector<JournalSummary>& journals() const { return journals_; }

 private:
  std::uint64_t add(std::uint64_t stamp, journal::Event event, std::uint32_t thread, Origin origin = {});
  std::uint32_t tag_name(std::uint32_t tag);
  std::uint32_t writer_thread(std::uint32_t thread);
  void fail(const std::string& sentence);
  std::uint64_t time_of(std::uint64_t stamp) const;

  OutputSettings settings_;
  const std::vector<ThreadFacts>& threads_;
  std::unique_ptr<journal::Writer> writer_;
  std::unique_ptr<journal::StackSubset> sites_;  ///< of the open journal
  std::vector<std::uint32_t>
      thread_index_;                      ///< the writer's index of each thread of the session; none where not yet used
  std::vector<std::uint32_t> tag_names_;  ///< the writer's name of each tag; none where not yet used
  std::uint64_t origin_ = 0;
  std::uint64_t last_time_ = 0;
  std::uint64_t next_block_ = 0;
  bool unflushed_ = false;
  std::vector<JournalSummary> journals_;
};

}  // namespace blockyard::record
