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

#include "journal/line_scanner.hpp"
#include "journal/records.hpp"

namespace blockyard::journal {

class TextParser final : public RecordParser {
 public:
  TextParser(std::unique_ptr<Input> input, std::string path);

  void next(Chunk& chunk) override;
  std::uint64_t bytes_total() const override { return lines_.input().bytes_total(); }

 private:
  void parse_event(std::string_view line);
  bool parse_last(std::string_view line);
  void parse_comment(Fields& line);
  void parse_note(std::string_view keyword, std::string_view rest, const Fields& line);
  void parse_stack_note(std::string_view keyword, std::string_view rest, const Fields& line);
  void add_record(Record record, const Fields& line);
  std::uint32_t thread_of(std::uint64_t id);
  Header& changed();

  LineScanner lines_;
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

/// Texts in # lines: backslash, newline and carriage return are written \\ \n \r.
std::string escape(std::string_view text);
std::string unescape(std::string_view text);

inline constexpr std::string_view text_signature = "# blockyard journal text 1";

}  // namespace blockyard::journal
