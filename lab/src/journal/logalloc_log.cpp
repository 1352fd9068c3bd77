// Firefox's logalloc (MALLOC_LOG): PID TID CALL(ARGUMENTS)=RESULT, where older ones have no TID. Sizes are decimal,
// pointers hexadecimal; in a log that logalloc_munge.py made small they are #N, which are used again.
#include "journal/forms.hpp"
#include "journal/log_parser.hpp"

namespace blockyard::journal {
namespace {

class LogallocLog final : public LogParser {
 public:
  LogallocLog(std::unique_ptr<Input> input, const std::string& path)
      : LogParser(std::move(input), path, "Firefox logalloc") {
    repair("the log has no times: they only give the order");
  }

 private:
  void parse(Fields& line) override {
    const std::uint64_t process = line.decimal("the process");
    line.skip_blanks("the call");
    const bool has_thread = line.is_digit();
    if (process_ == no_process) begin(process, has_thread);
    if (process != process_) {
      ++others_;
      return;
    }
    if (has_thread) {
      on_thread(line.decimal("the thread"));
      line.skip_blanks("the call");
    }
    const std::string_view call = line.until('(');
    if (call == "malloc" || call == "valloc") {
      const std::uint64_t size = line.decimal("the size");
      const std::uint64_t address = result(line);
      if (call == "malloc") return allocate(line, address, size);
      allocate_aligned(line, address, page_bytes, size);
    } else if (call == "free") {
      const std::uint64_t address = pointer(line);
      line.expect(")");
      free(address);
    } else if (call == "realloc") {
      const std::uint64_t old = pointer(line);
      line.expect(",");
      const std::uint64_t size = line.decimal("the size");
      reallocate(line, old, result(line), size);
    } else if (call == "calloc") {
      const std::uint64_t count = line.decimal("the count");
      line.expect(",");
      const std::uint64_t size = line.decimal("the size");
      allocate_zeroed(line, result(line), count, size);
    } else if (call == "memalign" || call == "posix_memalign" || call == "aligned_alloc") {
      const std::uint64_t alignment = line.decimal("the alignment");
      line.expect(",");
      const std::uint64_t size = line.decimal("the size");
      allocate_aligned(line, result(line), alignment, size);
    } else if (!call.starts_with("jemalloc_") && !call.starts_with("moz_")) {
      line.fail("malloc, calloc, realloc, memalign, posix_memalign, aligned_alloc, valloc or free was expected");
    }
  }

  void begin(std::uint64_t process, bool has_thread) {
    process_ = process;
    if (has_thread) return;
    header().threads_known = false;
    repair("the log has no threads: all events are of one");
  }

  void conclude() override {
    if (others_ == 0) return;
    repair(std::to_string(others_) + " lines of other processes were left out; the journal is of process " +
           std::to_string(process_));
  }

  std::uint64_t pointer(Fields& line) {
    if (!line.take("#")) return line.take("(nil)") ? 0 : line.hexadecimal("the pointer");
    header().has_addresses = false;
    return line.decimal("the pointer's number");
  }

  std::uint64_t result(Fields& line) {
    line.expect(")=");
    const std::uint64_t address = pointer(line);
    line.expect_end("the result");
    return address;
  }

  static constexpr std::uint64_t no_process = ~std::uint64_t{0};
  static constexpr std::uint64_t page_bytes = 4096;
  std::uint64_t process_ = no_process;
  std::uint64_t others_ = 0;
};

}  // namespace

bool looks_like_logalloc(std::string_view line) {
  constexpr std::string_view digits = "0123456789 ";
  const std::size_t call = line.find_first_not_of(digits);
  return call >= 2 && call != std::string_view::npos && line[call - 1] == ' ' && line[0] != ' ' &&
         line.find('(', call) != std::string_view::npos;
}

std::unique_ptr<RecordParser> parse_logalloc(std::unique_ptr<Input> input, const std::string& path) {
  return std::make_unique<LogallocLog>(std::move(input), path);
}

}  // namespace blockyard::journal
