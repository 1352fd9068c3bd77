// A journal's facts, in one pass and in memory bounded by its live blocks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "journal/event.hpp"
#include "journal/progress.hpp"
#include "journal/reader.hpp"

namespace blockyard::journal {

/// Of the call stacks. All 0 in a journal without.
struct StackFacts {
  std::uint64_t modules = 0;
  std::uint64_t modules_without_names = 0;  ///< though stack frames lie in them
  std::uint64_t addresses = 0;              ///< distinct stack frames, end markers not counted
  std::uint64_t named_addresses = 0;
  std::uint64_t sites = 0;   ///< distinct call stacks of events
  std::uint64_t events = 0;  ///< that have a call stack, preamble included
  /// Of them, those whose stack stops before its thread's beginning, by the reason in words.
  std::map<std::string_view, std::uint64_t> incomplete_events;
  std::uint64_t tagged_events = 0;
};

struct ThreadFacts {
  std::uint64_t allocations = 0;   ///< blocks given, reallocates included
  std::uint64_t frees = 0;         ///< blocks ended, reallocates included
  std::uint64_t remote_frees = 0;  ///< of blocks that another thread allocated
  std::uint64_t bytes = 0;         ///< asked for
  std::uint64_t preamble = 0;      ///< blocks of the preamble that it allocated
  std::uint64_t frame_marks = 0;
};

/// The time between two frame marks of the thread with the most marks; without marks, a sixtieth of a second.
struct FrameFacts {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;  ///< asked for
  std::uint64_t allocations = 0;
};

/// A sixtieth of a second: the frame of journals without marks.
inline constexpr std::uint64_t default_frame_ns = 16'666'667;

/// Upper bounds of the lifetime classes in ns; what lives longer is the last class.
inline constexpr std::array<std::uint64_t, 4> lifetime_bounds_ns{100'000, 1'000'000, default_frame_ns, 1'000'000'000};

/// All figures leave the preamble out, unless their name says otherwise.
struct Facts {
  Header header;
  std::string form;  ///< Source::form()
  std::uint64_t file_bytes = 0;
  std::uint64_t events = 0;              ///< all, preamble and marks included
  std::uint64_t duration_ns = 0;         ///< time of the last event
  std::array<std::uint64_t, 7> kinds{};  ///< by Kind
  std::uint64_t preamble_blocks = 0;
  std::uint64_t preamble_bytes = 0;
  std::uint64_t preamble_zero_sizes = 0;
  std::uint64_t allocations = 0;  ///< blocks given, reallocates included
  std::uint64_t frees = 0;        ///< blocks ended, reallocates included
  std::uint64_t total_bytes = 0;
  std::uint64_t max_live_bytes = 0;  ///< preamble included
  std::uint64_t max_live_bytes_at_ns = 0;
  std::uint64_t max_live_blocks = 0;
  std::uint64_t live_blocks = 0;  ///< at the end
  std::uint64_t live_bytes = 0;
  std::uint64_t remote_frees = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sizes;  ///< that were asked for, rising, and how often each was
  std::array<std::uint64_t, lifetime_bounds_ns.size() + 1>
      lifetimes{};  ///< of freed blocks; a preamble's count from the window's start
  std::vector<ThreadFacts> threads;
  bool marked_frames = false;
  std::uint32_t frame_thread = 0;
  std::uint64_t frame_count = 0;
  std::vector<FrameFacts> frames;  ///< without marks, only those in which something happened
  StackFacts stacks;
  std::vector<std::string> notes;
};

/// Takes a journal's events in their order, from whoever reads them. Throws Error where a block ends that is not alive.
class FactsGatherer {
 public:
  explicit FactsGatherer(std::string path);
  ~FactsGatherer();
  /// Some events before it is added.
  void prefetch(const Event& event) const;
  void add(const Event& event, bool preamble);
  /// Once, after all events of `source`.
  Facts conclude(const Source& source);

 private:
  class Counts;
  std::string path_;
  Facts facts_;
  std::unique_ptr<Counts> counts_;
};

/// Throws Error.
Facts gather_facts(const std::string& path, const Progress& progress);

/// As JSON, one object; docs/reference/journal-format.md names its members.
std::string facts_json(const Facts& facts);

}  // namespace blockyard::journal
