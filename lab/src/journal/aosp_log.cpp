// Android's memory_replay traces, which malloc_debug's record_allocs writes:
//
//   TID: malloc PTR SIZE          TID: calloc PTR COUNT SIZE    TID: memalign PTR ALIGN SIZE
//   TID: realloc NEW OLD SIZE     TID: free PTR                 TID: thread_done 0x0
//
// Pointers are hexadecimal. START_NS and END_NS of the call may follow, all but thread_done.
#include <optional>

#include "journal/forms.hpp"
#include "journal/log_parser.hpp"

namespace blockyard::journal {
namespace {

class AospLog final : public LogParser {
 public:
  AospLog(std::unique_ptr<Input> input, const std::string& path)
      : LogParser(std::move(input), path, "Android memory_replay") {}

 private:
  void parse(Fields& line) override {
    const std::uint64_t thread = line.decimal("the thread");
    line.expect(":");
    line.skip_any_blanks();
    const std::string_view call = line.until(' ');
    const auto pointer = [&line] { return field(line, &Fields::hexadecimal, "the pointer"); };
    const auto number = [&line](const char* what) { return field(line, &Fields::decimal, what); };
    if (call == "thread_done") return end_thread(thread);
    on_thread(thread);
    const std::uint64_t address = pointer();
    if (call == "malloc") {
      const std::uint64_t size = number("the size");
      take_times(line);
      allocate(line, address, size);
    } else if (call == "free") {
      take_times(line);
      free(address);
    } else if (call == "realloc") {
      const std::uint64_t old = pointer();
      const std::uint64_t size = number("the size");
      take_times(line);
      reallocate(line, old, address, size, duration_ns_);
    } else if (call == "calloc") {
      const std::uint64_t count = number("the count");
      const std::uint64_t size = number("the size");
      take_times(line);
      allocate_zeroed(line, address, count, size);
    } else if (call == "memalign") {
      const std::uint64_t alignment = number("the alignment");
      const std::uint64_t size = number("the size");
      take_times(line);
      allocate_aligned(line, address, alignment, size);
    } else {
      line.fail("malloc, calloc, memalign, realloc, free or thread_done was expected behind the thread");
    }
  }

  static std::uint64_t field(Fields& line, std::uint64_t (Fields::*kind)(const char*), const char* what) {
    line.skip_any_blanks();
    return (line.*kind)(what);
  }

  // The times decide by the first event whether the log has any.
  void take_times(Fields& line) {
    line.skip_any_blanks();
    const bool has_times = !line.at_end();
    if (!has_times_) {
      has_times_ = header().paced = has_times;
      if (!has_times) repair("the log has no times: they only give the order");
    }
    if (has_times != *has_times_) line.fail("some events have times and some have none");
    if (!has_times) return;
    const std::uint64_t start = line.decimal("the start");
    const std::uint64_t end = field(line, &Fields::decimal, "the end");
    line.expect_end("the end");
    if (end < start) line.fail("the call ends before it starts");
    duration_ns_ = end - start;
    at_time(start);
  }

  std::optional<bool> has_times_;
  std::uint64_t duration_ns_ = 0;
};

}  // namespace

bool looks_like_aosp(std::string_view line) {
  const std::size_t digits = line.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && line.substr(digits).starts_with(": ");
}

std::unique_ptr<RecordParser> parse_aosp(std::unique_ptr<Input> input, const std::string& path) {
  return std::make_unique<AospLog>(std::move(input), path);
}

}  // namespace blockyard::journal
