#include "journal/forms.hpp"

#include <algorithm>
#include <array>

#include "journal/byj_reader.hpp"
#include "journal/heaptrack_reader.hpp"
#include "journal/record_source.hpp"
#include "journal/text_parser.hpp"

namespace blockyard::journal {
namespace {

constexpr std::size_t telling_bytes = 4096;

template <auto parse>
std::unique_ptr<Source> read_log(std::unique_ptr<Input> input, const std::string& path, const Form& form) {
  return std::make_unique<RecordSource>(parse(std::move(input), path), path, form.name);
}

std::unique_ptr<Source> read_text(std::unique_ptr<Input> input, const std::string& path, const Form& form) {
  return std::make_unique<RecordSource>(std::make_unique<TextParser>(std::move(input), path), path, form.name);
}

std::unique_ptr<Source> read_heaptrack(std::unique_ptr<Input> input, const std::string& path, const Form&) {
  return std::make_unique<HeaptrackSource>(std::move(input), path);
}

bool looks_like_heaptrack(std::string_view line) { return line.starts_with("v "); }

// "a" alone is enough: a first line that is wrong after it deserves the message with its line number.
bool looks_like_text(std::string_view line) {
  return !line.empty() && std::string_view("af#").find(line.front()) != std::string_view::npos;
}

// A line of a text journal may be anything behind its first letter, so it is asked last.
constexpr std::array<Form, 6> forms{{
    {"heaptrack", "a heaptrack recording (v VERSION)", looks_like_heaptrack, read_heaptrack},
    {"unreal", "Unreal's malloc replay (Operation ResultPointer ...)", looks_like_unreal, read_log<parse_unreal>},
    {"aosp", "Android's memory_replay (TID: malloc PTR SIZE)", looks_like_aosp, read_log<parse_aosp>},
    {"logalloc", "Firefox's logalloc (PID TID malloc(SIZE)=PTR)", looks_like_logalloc, read_log<parse_logalloc>},
    {"mtrace", "glibc's mtrace (= Start)", looks_like_mtrace, read_log<parse_mtrace>},
    {"text", "a text journal (a SIZE PTR THREAD NS)", looks_like_text, read_text},
}};

std::string list_of_forms() {
  std::string list = "a .byj";
  for (const Form& form : forms) list += (&form == &forms.back() ? " nor " : ", ") + std::string(form.what);
  return list;
}

}  // namespace

std::span<const Form> text_forms() { return forms; }

std::string_view first_line(std::string_view first_bytes) {
  first_bytes.remove_prefix(std::min(first_bytes.find_first_not_of("\r\n"), first_bytes.size()));
  return first_bytes.substr(0, first_bytes.find_first_of("\r\n"));
}

std::unique_ptr<Source> open(const std::string& path, AtDamage at_damage, std::string_view name) {
  auto input = open_input(path);
  const std::string_view first = input->peek(telling_bytes);
  if (name == "byj" || (name.empty() && looks_like_byj(first))) return std::make_unique<ByjSource>(path, at_damage);
  const std::string_view line = first_line(first);
  for (const Form& form : forms) {
    // Empty lines alone are an empty text.
    if (name.empty() ? form.looks(line) || (line.empty() && form.name == "text") : form.name == name) {
      return form.open(std::move(input), path, form);
    }
  }
  if (!name.empty()) throw Error("there is no form '" + std::string(name) + "'");
  throw Error(path + " is no journal: it begins neither as " + list_of_forms() +
              "; where the beginning is missing, convert --from names the form");
}

}  // namespace blockyard::journal
