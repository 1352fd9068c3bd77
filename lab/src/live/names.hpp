// Names of a running program's functions, found beside the counting.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "journal/stacks.hpp"
#include "names/resolver.hpp"

namespace blockyard::live {

/// Resolves stack frames on a thread of its own, one module after the other, as `blockyard names` does at the end. A
/// module whose file is large takes seconds: whoever counts does not wait. Reading goes on only after twenty times as
/// long as it took, so that new frames of large modules cost at most a twentieth of a core.
class Names {
 public:
  Names();
  /// Does not wait for the module that is being read: the process ends without it.
  ~Names();
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  /// Stores the names that were found, then asks for those of frames that are new; at the journal's end `at_once`. True
  /// when names came.
  bool exchange(journal::Stacks& stacks, bool at_once);
  /// Whether all frames so far were looked up.
  bool is_idle() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Module {
    std::string path;
    std::string build_id;
    std::vector<std::uint32_t> frames;
    std::vector<std::uint64_t> addresses;
    std::vector<names::Functions> functions;
  };
  struct Shared;
  static void work(const std::shared_ptr<Shared>& shared, names::Resolver resolver);

  std::shared_ptr<Shared> shared_;
  std::uint32_t asked_ = 0;  ///< frames before it were asked for
  std::uint32_t known_ = 0;  ///< frames at the last exchange
  bool busy_ = false;
  Clock::time_point next_;  ///< nothing is asked for before
};

}  // namespace blockyard::live
