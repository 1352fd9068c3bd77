#include "block/give_back.hpp"

#include <array>
#include <atomic>

#include "base/background_work.hpp"
#include "base/pages.hpp"
#include "base/process.hpp"
#include "block/pool.hpp"
#include "block/watch.hpp"

namespace blockyard::block {
namespace {

constexpr std::uint64_t period_ns = 250'000'000;
constexpr Index chunk = (std::size_t{2} << 20) / granule_bytes;  // granules of a huge page, which is given back whole

constinit std::atomic<bool> wanted{false};
constinit std::atomic<bool> refused{false};
constinit std::atomic<bool> ending{false};  // the thread has looked for the last time

void run();
bool wake() { return true; }
void begin_in_child(bool ran, bool was_held_up);
constinit base::BackgroundWork work{{"by-blocks", run, wake, begin_in_child}};

// Whether every block of the slab is in its remote list. Only static pools have such lists, and these stay.
bool all_are_remote(Index index, std::uint64_t word) {
  return RemoteList::count_of(word) != 0 &&
         RemoteList::count_of(word) == slab(index).pool.load(std::memory_order_acquire)->capacity;
}

// The slabs of a chunk that are being given back.
class Claimed {
 public:
  void add(Index index, Index granules) {
    claimed_[count_++] = {index, granules};
    granules_ += granules;
  }

  // Adjacent ones by one call. A huge page is not split, since what lives in it goes on to use it.
  void give_back() {
    const bool whole = granules_ >= chunk;
    for (std::size_t i = 0; i < count_;) {
      const Claim& first = claimed_[i];
      Index end = first.index;
      std::size_t next = i;
      for (; next < count_ && claimed_[next].index == end; ++next) {
        end += claimed_[next].granules;
      }
      const bool gone = (whole || !granule(granule(first.index).page).huge) &&
                        base::discard_pages(address_of(first.index), (end - first.index) * granule_bytes);
      for (; i < next; ++i) {
        end_giving_back(granule(claimed_[i].index).remote, gone);
        gave_ = gave_ || gone;
      }
    }
    count_ = 0;
    granules_ = 0;
  }

  bool gave() const { return gave_; }

 private:
  struct Claim {
    Index index;
    Index granules;
  };
  std::array<Claim, chunk> claimed_;
  std::size_t count_ = 0;
  Index granules_ = 0;
  bool gave_ = false;
};

// Whether there is more to do a period later. O(granules).
bool look() {
  bool more = false;
  Claimed claimed;
  const Index end = window_fresh();
  for (Index index = 1 << max_order; index < end;) {
    const Index chunk_end = (index / chunk + 1) * chunk;
    for (Index granules; index < chunk_end; index += granules) {
      Granule& info = granule(index);
      granules = 1;
      const std::uint64_t word = info.remote.load(std::memory_order_acquire);
      if (word == 0 || says(word, Unneeded::given_back)) {
        continue;
      }
      if (says(word, Unneeded::a_while)) {
        if (move_on(info.remote, word, Unneeded::giving_back)) {
          granules = Index{1} << granule(info.page).slab_order;
          claimed.add(index, granules);
        }
      } else if (says(word, Unneeded::lately) || all_are_remote(index, word)) {
        more = move_on(info.remote, word, Unneeded::a_while) || more;
      }
    }
    claimed.give_back();
  }
  return more || claimed.gave();
}

void run() {
  constexpr int idle_periods = 2;
  for (int idle = 0;;) {
    work.wait_for_end(period_ns);
    if (work.is_told_to_end()) {
      return;
    }
    const bool was_wanted = wanted.exchange(false, std::memory_order_relaxed);
    const bool chains = free_stale_chains();
    idle = look() || chains || was_wanted ? 0 : idle + 1;
    if (idle == idle_periods) {
      ending.store(true, std::memory_order_seq_cst);
      if (!wanted.load(std::memory_order_seq_cst)) {
        return;
      }
      ending.store(false, std::memory_order_relaxed);
      idle = 0;
    }
  }
}

void begin_in_child(bool ran, bool) {
  if (!ran) {
    return;
  }
  free_stale_chains_in_child();
  const Index end = window_fresh();
  for (Index index = 1 << max_order; index < end; ++index) {
    std::atomic<std::uint64_t>& word = granule(index).remote;
    const std::uint64_t seen = word.load(std::memory_order_relaxed);
    if (says(seen, Unneeded::giving_back)) {
      word.store(with(seen, Unneeded::a_while), std::memory_order_relaxed);
    }
  }
}

void start() {
  if (refused.load(std::memory_order_relaxed) || base::BackgroundWork::is_in_sandbox()) {
    return;  // before any system call
  }
  while (ending.load(std::memory_order_relaxed) && !work.is_over()) {
    base::sleep_for(20'000);
  }
  const auto prepare = [] {
    ending.store(false, std::memory_order_relaxed);
    refused.store(process_is_watched() || base::read_number("BLOCKYARD_HEAP_JANITOR", 0, 1) == 0,
                  std::memory_order_relaxed);
    return !refused.load(std::memory_order_relaxed);
  };
  work.start(prepare, {});
}

[[gnu::constructor(102)]] void allow() { work.allow(); }

}  // namespace

void want_give_back() {
  constexpr Index small = 2 << max_order;  // the first run stays out of use
  if (window_fresh() <= small) {
    return;
  }
  if (!wanted.load(std::memory_order_relaxed)) {
    wanted.store(true, std::memory_order_seq_cst);
  }
  if (work.is_over() || ending.load(std::memory_order_seq_cst)) {
    start();
  }
}

}  // namespace blockyard::block
