// The recording of one process image: its rings, its merge, its journals.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "record/collect/interpreter.hpp"
#include "record/collect/merge.hpp"
#include "record/linux/collect/rings.hpp"
#include "record/linux/collect/unseen.hpp"

namespace blockyard::record {

/// The live blocks of a process at a fork, kept for the child.
struct ForkSnapshot {
  std::vector<LiveBlocks::Entry> blocks;
  std::vector<ThreadFacts> threads;
  StackBook::Mapped modules;
};

/// A region of memory that this process creates and maps; the program gets its file.
class SharedRegion {
 public:
  /// Throws std::system_error.
  explicit SharedRegion(const Layout& layout);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;
  Region region() const { return region_; }
  int file() const { return file_; }
  /// Returns the memory of a slot's rings to the system.
  void discard_rings(std::uint32_t slot);

 private:
  void discard(std::uint64_t offset, std::uint64_t bytes);

  Layout layout_;
  int file_ = -1;
  Region region_;
};

struct SessionSettings {
  pid_t pid = 0;               ///< as this process sees it
  bool same_namespace = true;  ///< the program's thread ids are those that /proc shows here
  std::uint64_t key = 0;
  std::uint64_t begin = 0;  ///< stamp of the handshake: nothing was recorded before
  Layout layout{0, 0, 0, 0};
  std::string hooked;          ///< as Unseen has it
  std::string own;             ///< the same
  bool own_is_hooked = false;  ///< the same
  bool is_fresh = true;        ///< no forked child
  bool was_running = false;    ///< before it was recorded, so it had blocks
  OutputSettings output;
  WindowPlan plan;
};

class Session {
 public:
  explicit Session(SessionSettings settings);

  /// Nothing is merged before this call: a forked child waits for the blocks it inherits. nullptr: none are known.
  void begin(const ForkSnapshot* inherited);
  bool has_begun() const { return begun_; }

  /// Takes what the rings hold; `now` as in Rings::drain. Returns the number of words taken.
  std::size_t drain(std::uint64_t now);
  /// Merges at most `budget` records and returns how many it merged.
  std::size_t merge_some(std::size_t budget);
  /// Once per second: reads thread names, frees slots of threads that are gone, and makes everything so far
  /// crash-proof.
  void housekeep();
  /// No thread of the image is running any more (it ended, or another image took its place).
  void mark_dead() { dead_ = true; }
  /// The same of an image that runs on and records nothing more.
  void mark_left() {
    dead_ = left_ = true;
    rings_.stop();
  }
  bool is_dead() const { return dead_; }
  /// True when everything a dead image left has been merged.
  bool is_drained() const;
  void finish(std::uint64_t now);

  const SessionSettings& settings() const { return settings_; }
  const SharedRegion& shared() const { return shared_; }
  Interpreter& interpreter() { return interpreter_; }
  /// What the recorder could not see of the program, so far.
  std::vector<std::string> unseen() const;
  const std::vector<ThreadFacts>& threads() const { return threads_; }
  std::size_t queued_words() const { return rings_.queued_words(); }
  bool slots_are_short() const { return rings_.slots_are_short(); }
  /// How often, and for how long in stamps, threads of the program waited for this process.
  std::uint64_t waits() const { return rings_.waits(); }
  std::uint64_t waited() const { return rings_.waited(); }

 private:
  OutputSettings output_settings() const;
  std::string blocks_from_before() const;
  void adopt_new_threads();
  void read_name(std::uint32_t thread);

  SessionSettings settings_;
  SharedRegion shared_;
  std::vector<ThreadFacts> threads_;
  std::vector<std::uint32_t> running_;  ///< threads that may still change their name
  /// Where the program ran before: when it was attached to, and how long it had run, as a sentence says it.
  std::string attached_;
  std::string first_name_;  ///< the name that threads have until somebody names them
  Unseen unseen_;
  Rings rings_;
  Interpreter interpreter_;
  std::uint32_t toggles_seen_ = 0;
  bool begun_ = false;
  bool dead_ = false;
  bool left_ = false;
  bool stopped_ = false;
};

}  // namespace blockyard::record
