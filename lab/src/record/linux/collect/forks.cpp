#include "record/linux/collect/forks.hpp"

#include <algorithm>

#include "record/linux/stamp.hpp"

namespace blockyard::record {
namespace {

constexpr std::size_t most_snapshot_blocks = 4'000'000;  // about 256 MB

}  // namespace

void Forks::meet(const Hello& hello) {
  if (hello.fork_stamp == 0) return;
  const Fork fork{hello.parent_key, hello.fork_stamp};
  if (childless_.erase(fork) == 0 && hello.purpose == Purpose::forked) early_.insert(fork);
}

void Forks::stop_expecting(pid_t pid) {
  std::erase_if(expected_, [pid](const Child& child) { return child.pid == pid; });
}

void Forks::wait_for_newcomers() { newcomers_until_ = monotonic_ns() + grace_ns; }

bool Forks::newcomers_may_come() const { return monotonic_ns() < newcomers_until_; }

void Forks::keep_snapshot(std::uint64_t parent_key, std::uint64_t stamp, ForkSnapshot snapshot) {
  const Fork fork{parent_key, stamp};
  if (early_.erase(fork) == 0) childless_.insert(fork);
  snapshot_blocks_ += snapshot.blocks.size();
  snapshots_[fork] = std::move(snapshot);
  // Children that never allocate leave theirs behind: the oldest go first.
  while (snapshot_blocks_ > most_snapshot_blocks && snapshots_.size() > 1) {
    const auto oldest = std::min_element(snapshots_.begin(), snapshots_.end(), [](const auto& left, const auto& right) {
      return left.first.second < right.first.second;
    });
    snapshot_blocks_ -= oldest->second.blocks.size();
    snapshots_.erase(oldest);
  }
}

std::optional<ForkSnapshot> Forks::take_snapshot(std::uint64_t parent_key, std::uint64_t stamp) {
  const auto found = snapshots_.find({parent_key, stamp});
  if (found == snapshots_.end()) return std::nullopt;
  snapshot_blocks_ -= found->second.blocks.size();
  return std::move(snapshots_.extract(found).mapped());
}

void Forks::add_to(std::vector<pollfd>& waiting) const {
  for (const Child& child : expected_) waiting.push_back({child.pidfd.get(), POLLIN, 0});
}

void Forks::forget_ended(std::span<const pollfd> polled) {
  std::size_t index = 0;
  const auto has_ended = [&](const Child&) { return polled[index++].revents != 0; };
  if (std::erase_if(expected_, has_ended) != 0) wait_for_newcomers();
}

}  // namespace blockyard::record
