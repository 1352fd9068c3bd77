// glibc's mtrace (MALLOC_TRACE, libc_malloc_debug.so.0), checked against glibc 2.36:
//
//   = Start                      @ SITE - ADDRESS                  free
//   @ SITE + ADDRESS SIZE        @ SITE < OLD, @ SITE > NEW SIZE   realloc
//   = End                        @ SITE ! ADDRESS SIZE             a realloc that failed
//
// SITE is MODULE:(FUNCTION+0xN)[0xRETURN]; its address counts from the module's beginning, and parts of it or all may
// be missing. calloc and memalign look like malloc. A malloc that failed gives (nil).
#include "journal/flat_map.hpp"
#include "journal/forms.hpp"
#include "journal/log_parser.hpp"

namespace blockyard::journal {
namespace {

class MtraceLog final : public LogParser {
 public:
  MtraceLog(std::unique_ptr<Input> input, const std::string& path) : LogParser(std::move(input), path, "glibc mtrace") {
    header().threads_known = false;
    repair("the log has no times: they only give the order");
    repair("the log has no threads: all events are of one");
    repair("the log does not tell calloc and aligned allocations from malloc");
  }

 private:
  void parse(Fields& line) override {
    if (line.take("= ")) return;
    if (line.take("@ ")) {
      take_site(line);
    } else {
      from_site(no_site);
    }
    const bool ends_realloc = line.take("> ");
    if (old_ != 0 && !ends_realloc) line.fail("the second line of a realloc ('>') was expected");
    if (ends_realloc) {
      if (old_ == 0) line.fail("the first line of the realloc ('<') is missing");
      const std::uint64_t address = pointer(line);
      reallocate(line, old_, address, size(line));
      old_ = 0;
    } else if (line.take("+ ")) {
      const std::uint64_t address = pointer(line);
      allocate(line, address, size(line));
    } else if (line.take("- ")) {
      free(pointer(line));
      line.expect_end("the pointer");
    } else if (line.take("< ")) {
      old_ = pointer(line);
      if (old_ == 0) line.fail("a realloc's old pointer is not 0");
    } else if (line.take("! ")) {
      count_failed();
    } else {
      line.fail("'+', '-', '<', '>' or '!' was expected behind the caller");
    }
  }

  void conclude() override {
    if (old_ == 0) return;
    header().cut_at_end = true;
    repair("a realloc whose second line is cut off was left out");
  }

  // Ends with "]" and a blank; paths may hold both, but nothing behind them does.
  void take_site(Fields& line) {
    const std::string_view rest = line.rest();
    const std::size_t end = rest.rfind("] ");
    const std::size_t begin = end == std::string_view::npos ? end : rest.rfind("[0x", end);
    if (begin == std::string_view::npos) line.fail("the caller ([0xADDRESS]) was expected behind '@'");
    Fields address = line;
    address.take(rest.substr(0, begin + 1));
    const std::uint64_t caller = address.hexadecimal("the caller");
    line.take(rest.substr(0, end + 2));
    // Addresses count from each module's beginning, so the name belongs to the key.
    const std::string_view place = rest.substr(0, begin);
    const std::uint64_t key = (std::hash<std::string_view>()(place) ^ caller * 0x9E37'79B9'7F4A'7C15U) | 1;
    std::uint32_t* known = sites_.find(key);
    from_site(known != nullptr ? *known : new_site(key, place, caller));
  }

  std::uint32_t new_site(std::uint64_t key, std::string_view place, std::uint64_t caller) {
    const std::size_t colon = std::min(place.rfind(":("), place.size());
    std::string_view function = place.substr(std::min(colon + 2, place.size()));
    function = function.substr(0, function.rfind('+'));
    std::string_view module = place.substr(0, colon);
    if (module.ends_with(':')) module.remove_suffix(1);
    const std::uint32_t site = make_site(std::string(module), caller == 0 ? 0 : caller - 1, std::string(function));
    sites_.insert(key, site);
    return site;
  }

  static std::uint64_t pointer(Fields& line) { return line.take("(nil)") ? 0 : line.hexadecimal("the pointer"); }
  static std::uint64_t size(Fields& line) {
    line.skip_blanks("the size");
    const std::uint64_t bytes = line.hexadecimal("the size");
    line.expect_end("the size");
    return bytes;
  }

  std::uint64_t old_ = 0;  ///< of a realloc whose second line is to come
  FlatMap<std::uint32_t> sites_;
};

}  // namespace

bool looks_like_mtrace(std::string_view line) { return line.starts_with("= Start") || line.starts_with("@ "); }

std::unique_ptr<RecordParser> parse_mtrace(std::unique_ptr<Input> input, const std::string& path) {
  return std::make_unique<MtraceLog>(std::move(input), path);
}

}  // namespace blockyard::journal
