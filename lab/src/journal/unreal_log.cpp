// Unreal Engine's malloc replay proxy (-mallocsavereplay writes mallocreplay-pid-N.txt), as its documents describe it:
//
//   Operation ResultPointer PointerIn SizeIn AlignmentIn
//   Malloc|Realloc|Free OUT IN SIZE ALIGN<TAB># SERIAL
//   Gracefully closed
//
// All numbers are decimal. Each line is written after its call and outside of the allocator's lock, so an address may
// be given again before the line of its free.
#include "journal/forms.hpp"
#include "journal/log_parser.hpp"

namespace blockyard::journal {
namespace {

constexpr std::string_view heading = "Operation ";
constexpr std::string_view good_end = "Gracefully closed";
constexpr std::uint64_t malloc_alignment = 16;

class UnrealLog final : public LogParser {
 public:
  UnrealLog(std::unique_ptr<Input> input, const std::string& path)
      : LogParser(std::move(input), path, "Unreal Engine malloc replay") {
    header().threads_known = false;
    repair("the log has no times: an event's time is its serial number, and only gives the order");
    repair("the log has no threads: all events are of one");
  }

 private:
  void parse(Fields& line) override {
    if (line.line().starts_with(heading)) return;
    if (line.line().starts_with(good_end)) {
      is_closed_ = true;
      return;
    }
    const std::string_view call = line.until(' ');
    const std::uint64_t out = number(line, "the result");
    const std::uint64_t in = number(line, "the pointer");
    const std::uint64_t size = number(line, "the size");
    const std::uint64_t alignment = number(line, "the alignment");
    line.skip_any_blanks();
    line.expect("#");
    at_time(number(line, "the serial number") - 1);
    line.expect_end("the serial number");
    if (call == "Malloc") {
      // 0 is the engine's default.
      alignment == 0 ? allocate(line, out, size) : allocate_aligned(line, out, alignment, size);
    } else if (call == "Realloc") {
      if (in != 0 && alignment > malloc_alignment) ++alignments_lost_;
      if (in == 0 && alignment != 0) return allocate_aligned(line, out, alignment, size);
      reallocate(line, in, out, size);
    } else if (call == "Free") {
      free(in);
    } else {
      line.fail("Malloc, Realloc or Free was expected");
    }
  }

  void conclude() override {
    if (!is_closed_) {
      header().cut_at_end = true;
      repair("the log was not closed: the program was stopped, and what is alive at the end is no leak");
    }
    if (alignments_lost_ != 0) {
      repair(std::to_string(alignments_lost_) +
             " reallocs lost an alignment above 16 bytes, which a journal's have not");
    }
  }

  static std::uint64_t number(Fields& line, const char* what) {
    line.skip_any_blanks();
    return line.decimal(what);
  }

  bool is_closed_ = false;
  std::uint64_t alignments_lost_ = 0;
};

}  // namespace

bool looks_like_unreal(std::string_view line) {
  return line.starts_with(heading) || line.starts_with("Malloc ") || line.starts_with("Realloc ") ||
         line.starts_with("Free ");
}

std::unique_ptr<RecordParser> parse_unreal(std::unique_ptr<Input> input, const std::string& path) {
  return std::make_unique<UnrealLog>(std::move(input), path);
}

}  // namespace blockyard::journal
