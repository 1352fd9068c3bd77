// What a running program does, as JSON: one line a second, and answers to questions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "journal/byj_reader.hpp"
#include "journal/json_text.hpp"
#include "live/counts.hpp"
#include "sites/labels.hpp"

namespace blockyard::live {

/// Groups call stacks into sites, by the function that speaks for them, and says what they did. Site numbers stay
/// valid; a stack may change its site when names come. One thread at a time.
class Report {
 public:
  /// Both must outlive it. Lists have at most `limit` sites.
  Report(const journal::ByjSource& source, const Counts& counts, std::uint64_t budget_ns, std::size_t limit)
      : source_(source), counts_(counts), budget_ns_(budget_ns), limit_(limit) {}

  /// Stacks or names have changed: they are looked at anew before the next answer.
  void names_came() { names_came_ = true; }

  /// Everything since the line before. Ask once before each Counts::end_window().
  journal::Json line();
  /// The sites of a frame that is kept; without them when it is not.
  journal::Json frame(std::uint64_t number);
  /// The stacks of a site, those that allocated most before the last line first, then those that hold most.
  journal::Json stacks(std::uint32_t site);

 private:
  struct Totals {
    std::uint64_t allocations = 0;
    std::uint64_t bytes = 0;
    Held live;
    Held since_mark;
  };
  /// Since when a site's memory has not fallen from one line to the next, and how often it rose.
  struct Growth {
    std::uint64_t begin_ns = 0;
    std::uint64_t begin_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t last_rise_ns = 0;
    std::uint32_t rises = 0;
  };
  struct Site {
    std::string function;
    std::string module;
    Totals totals;
    Growth growth;
  };
  using Ranked = std::vector<std::pair<std::uint64_t, std::uint32_t>>;  ///< what counts, and the site

  void label();
  std::uint32_t site_of(std::uint32_t stack) const { return stack < site_of_.size() ? site_of_[stack] : 0; }
  std::uint32_t find_site(const std::string& function, const std::string& module);
  void add_up();
  journal::Json listed(Ranked ranked, const std::vector<Totals>& totals) const;
  journal::Json frame_json(const Frame& frame) const;
  journal::Json growing() const;

  const journal::ByjSource& source_;
  const Counts& counts_;
  std::uint64_t budget_ns_;
  std::size_t limit_;
  bool names_came_ = true;
  journal::StackCounts labelled_;
  std::unique_ptr<sites::Labels> labels_;
  std::vector<Site> sites_{1};  ///< 0: no call stack
  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<std::uint32_t> site_of_;  ///< by stack
  std::uint64_t next_frame_ = 1;        ///< the first that no line has shown
};

}  // namespace blockyard::live
