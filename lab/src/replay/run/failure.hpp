// How a run fails: run.json and one sentence on standard error say why, whatever the allocator did to the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace blockyard::replay {

/// Text that needs no heap: safe in a signal handler, and while the allocator under test may be broken.
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

/// Says where to write a failure: `folder`/run.json gets `before`, the sentence as JSON text, and `after`. Call it
/// again when more is known, but not while another thread may fail. Before the first call, failures go to standard
/// error only.
void prepare_failure(const std::string& folder, const std::string& before, const std::string& after);

/// Writes run.json and `blockyard: REASON`, then ends the process with status 1. When several threads fail, the first
/// one wins and the others stop. Async-signal-safe.
[[noreturn]] void fail_run(const SafeText& reason);

/// Removes what a run has written into `folder` so far, and the folder when nothing else is in it. Async-signal-safe.
void discard_results(const char* folder);

/// Ends the process with status 1, one sentence and no results: for what is not the allocator's fault.
[[noreturn]] void abandon_run(const char* folder, const char* sentence);

/// Does what fail_run() does, but returns, so that a signal handler can let the signal end the process. Returns false
/// when another thread is failing already.
bool report_failure(const SafeText& reason);

}  // namespace blockyard::replay
