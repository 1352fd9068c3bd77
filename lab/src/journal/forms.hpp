// The forms that a journal is read from, and how their first line tells them apart.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "journal/input.hpp"
#include "journal/reader.hpp"

namespace blockyard::journal {

struct Form {
  std::string_view name;  ///< for --from, and of Source::form()
  std::string_view what;  ///< for messages, with its article
  bool (*looks)(std::string_view first_line);
  std::unique_ptr<Source> (*open)(std::unique_ptr<Input> input, const std::string& path, const Form& form);
};

/// All but .byj, in the order in which they are asked.
std::span<const Form> text_forms();

/// The first of these bytes' lines that holds anything, without its end.
std::string_view first_line(std::string_view first_bytes);

// One form each; all may throw Error while they look ahead.
class RecordParser;
std::unique_ptr<RecordParser> parse_aosp(std::unique_ptr<Input> input, const std::string& path);
bool looks_like_aosp(std::string_view first_line);
std::unique_ptr<RecordParser> parse_logalloc(std::unique_ptr<Input> input, const std::string& path);
bool looks_like_logalloc(std::string_view first_line);
std::unique_ptr<RecordParser> parse_mtrace(std::unique_ptr<Input> input, const std::string& path);
bool looks_like_mtrace(std::string_view first_line);
std::unique_ptr<RecordParser> parse_unreal(std::unique_ptr<Input> input, const std::string& path);
bool looks_like_unreal(std::string_view first_line);

}  // namespace blockyard::journal
