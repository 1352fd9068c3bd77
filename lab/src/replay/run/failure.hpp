// How a run fails: whatever the allocator did to the process, run.json says so, and one sentence on standard error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace blockyard::replay {

/// Text composed without the heap: safe in a signal handler, and while the allocator under test may be broken.
class SafeText {
 public:
  SafeText& operator<<(const char* text);
  SafeText& operator<<(std::uint64_t number);
  [[nodiscard]] const char* c_str() const { return text_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  char text_[4608] = {};
  std::size_t size_ = 0;
};

/// Where a failure is written: `folder`/run.json gets before + the sentence as JSON text + after. Call again when more
/// is known. Before the first call, failures only go to standard error. Not while a failure may happen on another
/// thread.
void prepare_failure(const std::string& folder, const std::string& before, const std::string& after);

/// Writes run.json and `blockyard: REASON`; ends the process with status 1. The first of several threads wins, the
/// others stop where they are. Async-signal-safe.
[[noreturn]] void fail_run(const SafeText& reason);

/// Removes what a run has begun to write into `folder`, and the folder when nothing else is in it. Async-signal-safe.
void discard_results(const char* folder);

/// Ends the process with status 1, one sentence and no results: for what is not the allocator's fault while it runs.
[[noreturn]] void abandon_run(const char* folder, const char* sentence);

/// As fail_run(), and returns: for a signal handler that lets the signal end the process. False when another thread is
/// failing already.
bool report_failure(const SafeText& reason);

}  // namespace blockyard::replay
