// One thread's records on their way from its ring to the merge.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "record/channel.hpp"

namespace blockyard::record {

/// A queue of whole records, oldest first, in order of their stamps. Not thread-safe.
class Lane {
 public:
  explicit Lane(std::uint32_t thread) : thread_(thread) {}

  /// The session's number of the thread.
  std::uint32_t thread() const { return thread_; }
  bool empty() const { return chunks_.empty(); }
  std::size_t queued_words() const { return queued_; }

  /// The oldest record; the lane must not be empty.
  const std::uint64_t* front() const { return chunks_.front().words.data() + chunks_.front().begin; }
  /// Its stamp, raised to that of the record before it if a clock ever stepped back.
  std::uint64_t front_stamp() const { return std::max(front()[1], last_stamp_); }

  /// Whether `is_it(record)` holds for one of the records after the oldest that have its stamp. O(those).
  template <class Predicate>
  bool any_behind_front(Predicate&& is_it) const {
    const std::uint64_t stamp = front_stamp();
    bool is_front = true;
    for (const Chunk& chunk : chunks_) {
      for (std::size_t at = chunk.begin; at != chunk.words.size(); at += words_of(chunk.words[at])) {
        const std::uint64_t* const record = chunk.words.data() + at;
        if (record[1] > stamp) return false;
        if (!is_front && is_it(record)) return true;
        is_front = false;
      }
    }
    return false;
  }

  /// Calls `visit(record)` once for each record, some records before it is the oldest.
  template <class Visit>
  void look_ahead(Visit&& visit) {
    constexpr std::size_t least_ahead = 8;
    if (ahead_ >= least_ahead) return;
    const Chunk& chunk = chunks_.front();
    while (ahead_ < 2 * least_ahead && ahead_end_ != chunk.words.size()) {
      visit(chunk.words.data() + ahead_end_);
      ahead_end_ += words_of(chunk.words[ahead_end_]);
      ++ahead_;
    }
  }

  void pop() {
    last_stamp_ = front_stamp();
    Chunk& chunk = chunks_.front();
    const std::size_t words = words_of(chunk.words[chunk.begin]);
    chunk.begin += words;
    queued_ -= words;
    if (ahead_ > 0) {
      --ahead_;
    } else {
      ahead_end_ = chunk.begin;
    }
    if (chunk.begin != chunk.words.size()) return;
    chunks_.pop_front();
    ahead_end_ = 0;
  }

  /// Appends words [from, to) of a ring. They must be whole records; everything between two heads is.
  void take(const std::uint64_t* ring, std::uint64_t mask, std::uint64_t from, std::uint64_t to) {
    constexpr std::size_t chunk_words = std::size_t{1} << 16;
    if (from == to) return;
    const std::size_t count = to - from;
    if (chunks_.empty() || chunks_.back().words.size() + count > chunk_words) {
      chunks_.emplace_back();
      chunks_.back().words.reserve(std::max(count, std::min(chunk_words, 4 * count)));
    }
    std::vector<std::uint64_t>& words = chunks_.back().words;
    const std::size_t first = std::min<std::size_t>(count, mask + 1 - (from & mask));
    words.insert(words.end(), ring + (from & mask), ring + (from & mask) + first);
    words.insert(words.end(), ring, ring + (count - first));
    queued_ += count;
  }

 private:
  struct Chunk {
    std::vector<std::uint64_t> words;
    std::size_t begin = 0;
  };

  std::uint32_t thread_;
  std::uint64_t last_stamp_ = 0;
  std::size_t queued_ = 0;
  std::size_t ahead_ = 0;      ///< records from the oldest on that look_ahead() has visited
  std::size_t ahead_end_ = 0;  ///< in the first chunk: where they end
  std::deque<Chunk> chunks_;
};

}  // namespace blockyard::record
