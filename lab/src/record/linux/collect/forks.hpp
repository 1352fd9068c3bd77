// What the collector knows of forked children before they record anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "record/channel.hpp"
#include "record/linux/collect/file_descriptor.hpp"
#include "record/linux/collect/session.hpp"

namespace blockyard::record {

/// A child announces itself as soon as it runs; it may never record anything. The fork's mark arrives with its parent's
/// records, before the announcement or after it. Until the child records, the parent's blocks are kept for it.
class Forks {
 public:
  struct Child {
    pid_t pid = 0;
    FileDescriptor pidfd;
  };
  static constexpr std::uint64_t grace_ns = 200'000'000;  ///< for a child that was just forked to announce itself

  /// A program named the fork that it comes from, if any.
  void meet(const Hello& hello);
  /// A child runs and has recorded nothing.
  void expect(pid_t pid, FileDescriptor pidfd) { expected_.push_back({pid, std::move(pidfd)}); }
  /// It records now.
  void stop_expecting(pid_t pid);
  /// A child that recorded nothing has ended. It may have forked one that has not announced itself yet, as daemons do.
  void wait_for_newcomers();
  /// A fork's mark was merged: these are its parent's blocks at that moment.
  void keep_snapshot(std::uint64_t parent_key, std::uint64_t stamp, ForkSnapshot snapshot);
  /// The blocks that a child inherits; none where the fork's mark has not been merged.
  std::optional<ForkSnapshot> take_snapshot(std::uint64_t parent_key, std::uint64_t stamp);

  const std::vector<Child>& expected() const { return expected_; }
  bool newcomers_may_come() const;
  /// A child that has recorded nothing is running, or one may announce itself.
  bool children_may_come() const { return !expected_.empty() || !childless_.empty() || newcomers_may_come(); }

  /// Adds the descriptors that become readable when an expected child ends.
  void add_to(std::vector<pollfd>& waiting) const;
  /// Forgets the children that have ended; `polled` is what add_to() added.
  void forget_ended(std::span<const pollfd> polled);

 private:
  using Fork = std::pair<std::uint64_t, std::uint64_t>;  ///< the parent's recording and the fork's stamp

  std::vector<Child> expected_;
  std::uint64_t newcomers_until_ = 0;  ///< monotonic ns
  std::set<Fork> childless_;           ///< merged, but the child has not announced itself: it may not have run yet
  std::set<Fork> early_;               ///< forks whose child announced itself before the fork's mark was merged
  std::map<Fork, ForkSnapshot> snapshots_;
  std::size_t snapshot_blocks_ = 0;
};

}  // namespace blockyard::record
