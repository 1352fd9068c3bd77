// Parses lines of the text form into records; nothing is resolved or put in order here.
//
//   a SIZE PTR THREAD NS      an allocation
//   f PTR THREAD NS           a free
//   # anything                a comment, unless the first line is `# blockyard journal text 1`: then some of them say
//                             what the form can't (docs/reference/journal-format.md lists them)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "journal/event.hpp"
#include "journal/input.hpp"
#include "journal/stacks.hpp"

namespace blockyard::journal {

/// What only few lines have.
struct Extra {
  std::uint64_t old_address = 0;  ///< reallocate
  std::uint64_t duration_ns = 0;  ///< reallocate
  std::uint32_t alignment = 0;    ///< allocate_aligned
  std::uint32_t site = no_site;
  std::uint32_t tag = 0;
};
inline constexpr std::uint32_t no_extra = 0xFFFF'FFFF;

/// One line, or the lines of one realloc.
struct Record {
  std::uint64_t time_ns;
  std::uint64_t address;  ///< 0 for marks
  std::uint64_t size;
  std::uint64_t line;
  std::uint32_t thread;  ///< dense index
  std::uint32_t extra;   ///< index into the chunk's extras, or no_extra
  Kind kind;
  bool done;  ///< was emitted ahead of its turn
};

/// What a text's # lines add to the call stacks.
struct StackLines {
  struct Named {
    std::uint32_t frame;
    std::uint32_t line;
    std::string name;
    std::string file;
  };
  std::vector<Module> modules;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> unmapped;  ///< module, ns
  std::vector<Frame> frames;
  std::vector<Node> nodes;
  std::vector<Named> names;  ///< a frame's functions stand together
  /// Adds all of it.
  void add_to(Stacks& stacks) const;
};

struct Chunk {
  std::vector<Record> records;
  std::vector<Extra> extras;
  std::shared_ptr<const Header> header;      ///< set when threads, names or facts changed
  std::shared_ptr<const StackLines> stacks;  ///< set when there are new ones
  std::uint64_t bytes_read = 0;
  bool annotated = false;  ///< the text's first line says that # lines have meaning
  bool last = false;
  bool torn = false;  ///< the text's last event is cut off, and left out
  bool cut = false;   ///< the compressed stream that holds the text is cut off
};

/// One thread at a time.
class TextParser {
 public:
  /// Records in a chunk.
  static constexpr std::size_t chunk_records = 16'384;

  TextParser(std::unique_ptr<Input> input, std::string path);

  /// Fills `chunk`, whose vectors are reused. Throws Error with the line's number.
  void next(Chunk& chunk);

 private:
  struct Cursor;
  [[noreturn]] void fail(const char* line, const std::string& what) const;
  bool refill();
  void parse_event(Cursor& at);
  bool parse_last(Cursor& at);
  void parse_comment(std::string_view text, const char* line);
  void parse_note(std::string_view keyword, std::string_view rest, const char* line);
  void parse_stack_note(std::string_view keyword, std::string_view rest, const char* line);
  void add_record(Record record, const char* line);
  std::uint32_t thread_of(std::uint64_t id);
  Header& changed();

  std::unique_ptr<Input> input_;
  std::string path_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;   ///< first byte not yet parsed
  std::size_t end_ = 0;     ///< after the last whole line
  std::size_t filled_ = 0;  ///< after the last byte read
  bool at_end_ = false;
  bool is_cut_ = false;   ///< a compressed text ends before its stream does
  bool unended_ = false;  ///< the last line has no newline: it may be cut off
  std::uint64_t line_ = 0;
  std::uint64_t latest_ns_ = 0;  ///< of the last event that the chunk before had
  bool has_records_ = false;
  bool annotated_ = false;  ///< the first line said so
  Header header_;
  bool header_changed_ = true;
  std::unordered_map<std::uint64_t, std::uint32_t> threads_;
  std::uint64_t last_thread_id_ = 0;
  std::uint32_t last_thread_ = no_extra;
  Stacks stacks_;  ///< without names; checks each line
  std::shared_ptr<StackLines> stack_lines_;
  Chunk* chunk_ = nullptr;
  // What the # lines before an event say about it.
  std::optional<Extra> pending_;
  Kind pending_kind_ = Kind::allocate;
  std::optional<Record> realloc_free_;  ///< the f line of a realloc whose a line must follow
};

/// `preamble_events` of a text without a `# preamble` line.
inline constexpr std::uint64_t preamble_unsaid = ~std::uint64_t{0};

/// Texts in # lines: backslash, newline and carriage return are written \\ \n \r.
std::string escape(std::string_view text);
std::string unescape(std::string_view text);

inline constexpr std::string_view text_signature = "# blockyard journal text 1";

}  // namespace blockyard::journal
