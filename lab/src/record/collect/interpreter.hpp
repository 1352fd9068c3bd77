// Interprets merged records: which blocks live, which events the journals get, when windows open and close.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/collect/live_blocks.hpp"
#include "record/collect/merge.hpp"
#include "record/collect/output.hpp"
#include "record/collect/stack_book.hpp"
#include "record/collect/tag_book.hpp"

namespace blockyard::record {

inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// When events are written, in stamps.
struct WindowPlan {
  std::uint64_t open_at = 0;       ///< `never`: wait for the signal or by_journal_start()
  std::uint64_t close_at = never;  ///< no window opens after it
  std::uint64_t length = never;    ///< of a window opened by the signal or by_journal_start()
};

/// What was corrected; all 0 in a recording without surprises.
struct Repairs {
  std::uint64_t unknown_frees = 0;  ///< frees of blocks that were not seen to be allocated: left out
  std::uint64_t before_frees = 0;   ///< of those, while a window was open
  std::uint64_t before_bytes = 0;   ///< what the allocator said of their sizes, summed
  std::uint64_t missed_frees = 0;   ///< blocks whose address was given again: a free was added
  std::uint64_t split_reallocates =
      0;  ///< another thread got the old block before the call ended: written as two events
};

class Interpreter : public RecordSink {
 public:
  /// `threads` is the session's list; names that the program gives are kept there. It must outlive this.
  Interpreter(OutputSettings malloc_output, WindowPlan plan, std::vector<ThreadFacts>& threads);
  ~Interpreter() override;

  void apply(std::uint32_t thread, std::uint64_t stamp, const std::uint64_t* record) override;
  bool is_possible(const std::uint64_t* record) const override;
  void prefetch(const std::uint64_t* record) const override;

  /// Starts from the blocks and the modules of the parent process.
  void inherit(const std::vector<LiveBlocks::Entry>& blocks, const StackBook::Mapped& modules) {
    malloc_space_.live.assign(blocks);
    book_.inherit(modules);
  }
  /// All records before `stamp` have been applied: windows open and close even though the program does nothing.
  void advance(std::uint64_t stamp);
  /// The window's signal came.
  void toggle(std::uint64_t stamp);
  void thread_renamed(std::uint32_t thread);
  /// No record of this thread follows.
  void thread_ended(std::uint32_t thread) { book_.forget_thread(thread); }
  void flush();
  /// The program ended, or runs on unrecorded.
  void finish(std::uint64_t stamp, bool runs_on);
  /// No later record will be written.
  bool is_over() const { return over_; }

  /// Of malloc, whether a window was open or not.
  std::uint64_t allocations() const { return malloc_space_.allocations; }
  std::uint64_t most_live_bytes() const { return malloc_space_.live.most_bytes(); }

  const Repairs& repairs() const { return repairs_; }
  const StackBook& book() const { return book_; }
  std::vector<JournalSummary> journals() const;
  /// Those of malloc alone.
  std::vector<JournalSummary> malloc_journals() const;
  /// Called with the stamp of each fork, when the live blocks are those that the child finds.
  std::function<void(std::uint64_t stamp, const LiveBlocks& live)> on_fork;
  /// Called when a journal of by_journal_open() is complete, or could not be completed.
  std::function<void(bool complete)> on_engine_closed;

 private:
  /// A realloc between its start and its end.
  struct Pending {
    std::uint64_t old_address = 0;
    std::uint64_t begin = 0;
    LiveBlock block;
    std::uint64_t old_size = 0;  ///< where the allocator said it
    bool known = false;          ///< the old block was live
    bool freed = false;          ///< its address was given to another thread meanwhile, so its free is already written
  };
  struct Space {
    LiveBlocks live;
    std::unique_ptr<Output> output;
    std::uint64_t allocations = 0;  ///< without a realloc's
    std::uint64_t unknown_frees = 0;
    std::unordered_map<std::uint32_t, Pending> pending;  ///< by thread
  };

  void count_unknown(Space& space, std::uint64_t size);
  void open(std::uint64_t stamp);
  void close(std::uint64_t stamp, bool stopped);
  void give(Space& space, std::uint32_t thread, std::uint64_t stamp, std::uint64_t address, LiveBlock block);
  void make_way(Space& space, std::uint32_t thread, std::uint64_t stamp, std::uint64_t address, Origin origin);
  void end_reallocate(Space& space, std::uint32_t thread, std::uint64_t stamp, std::uint64_t address,
                      std::uint64_t size, Origin origin);
  void open_engine_journal(std::uint64_t stamp, const std::string& path);
  void close_engine_journal(std::uint64_t stamp);

  OutputSettings settings_;
  WindowPlan plan_;
  std::vector<ThreadFacts>& threads_;
  StackBook book_;
  TagBook tags_;
  Space malloc_space_;
  Space engine_space_;
  std::vector<JournalSummary> closed_engine_journals_;
  Repairs repairs_;
  std::uint64_t window_end_ = never;
  bool window_open_ = false;
  bool scheduled_ = true;  ///< the plan's own window is still to come
  bool over_ = false;
};

}  // namespace blockyard::record
