#include "sites/labels.hpp"

#include <algorithm>
#include <array>

namespace blockyard::sites {
namespace {

bool is_part_of_name(char letter) {
  return letter == '_' || (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z');
}

/// Whether `word` stands at `place`, and no longer word does.
bool has_word(std::string_view text, std::size_t place, std::string_view word) {
  const std::size_t end = place + word.size();
  return text.substr(place).starts_with(word) && (place == 0 || !is_part_of_name(text[place - 1])) &&
         (end == text.size() || !is_part_of_name(text[end]));
}

/// Behind the parenthesis that closes the one at or after `place`, or the text's end.
std::size_t behind_parentheses(std::string_view text, std::size_t place) {
  int depth = 0;
  for (; place < text.size(); ++place) {
    if (text[place] == '(') ++depth;
    if (text[place] == ')' && --depth == 0) return place + 1;
  }
  return text.size();
}

/// The qualified name in a demangled function: without its parameters and, of a template, its result.
std::string_view qualified_name(std::string_view function) {
  constexpr std::string_view unnamed = "(anonymous namespace)";
  constexpr std::string_view call = "operator()";
  int depth = 0;
  std::size_t begin = 0;
  std::size_t i = 0;
  while (i < function.size()) {
    const std::string_view rest = function.substr(i);
    if (rest.starts_with(unnamed)) {
      i += unnamed.size();
      continue;
    }
    if (depth == 0 && has_word(function, i, "decltype")) {
      i = behind_parentheses(function, i);
      continue;
    }
    // Operators have brackets and blanks of their own, and end the name.
    if (depth == 0 && has_word(function, i, "operator")) {
      i = function.find('(', i + (rest.starts_with(call) ? call.size() : 0));
      break;
    }
    if (rest[0] == '<' || rest[0] == '[' || rest[0] == '{') ++depth;
    if ((rest[0] == '>' && (i == 0 || function[i - 1] != '-')) || rest[0] == ']' || rest[0] == '}') --depth;
    if (depth == 0 && rest[0] == '(') break;
    if (depth == 0 && rest[0] == ' ') begin = i + 1;
    ++i;
  }
  return function.substr(begin, i == std::string_view::npos ? i : i - begin);
}

/// The C library's own names for a function, such as __GI___strdup and __libc_malloc, are the function's.
std::string_view without_reserved_prefix(std::string_view name) {
  if (!name.starts_with("__")) return name;
  for (const std::string_view prefix : {"__GI_", "__", "libc_"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return name;
}

/// A template's argument may be one; the template is none.
bool is_operator_new_of_a_class(std::string_view name) {
  const std::size_t at = name.rfind("::operator new");
  if (at == std::string_view::npos) return false;
  const std::string_view scope = name.substr(0, at);
  return std::count(scope.begin(), scope.end(), '<') == std::count(scope.begin(), scope.end(), '>');
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::regex expression_of(const std::string& text) {
  try {
    return std::regex(text, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
    throw journal::Error("'" + text + "' is no regular expression");
  }
}

bool is_wrapper(std::string_view function) {
  static constexpr std::array<std::string_view, 14> names{
      "malloc", "calloc",  "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign",
      "valloc", "pvalloc", "strdup",  "strndup",      "xmalloc",        "xcalloc",       "xrealloc"};
  static constexpr std::array<std::string_view, 20> prefixes{
      "std::", "__gnu_cxx::", "__cxx", "operator new", "alloc::", "core::", "<alloc::", "<core::", "<std::", "__rust_",
      // Rust's HashMap
      "hashbrown::", "<hashbrown::",
      // libblockyard's pools and lifetimes
      "by_block_", "by_static_block_", "by_lifetime_", "by_temp_", "by_rewindable_",
      "blockyard::block::", "blockyard::lifetime::",
      // the recorder's own, such as its hook of a buffer swap
      "blockyard::record::"};
  // .NET's perf map writes `RESULT [ASSEMBLY] NAMESPACE.TYPE::METHOD(ARGUMENTS)[TIER]`.
  static constexpr std::string_view dotnet = "[System.Private.CoreLib] System.Runtime.InteropServices.";
  if (const std::size_t at = function.find(dotnet); at != std::string_view::npos) {
    const std::string_view method = function.substr(at + dotnet.size());
    return method.starts_with("NativeMemory::") || method.starts_with("Marshal::");
  }
  const std::string_view name = qualified_name(function);
  return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return name.starts_with(prefix); }) ||
         std::find(names.begin(), names.end(), without_reserved_prefix(name)) != names.end() ||
         is_operator_new_of_a_class(name);
}

Labels::Labels(const journal::Stacks& stacks, bool show_wrappers, const std::string& skip, bool tell_places_apart)
    : stacks_(stacks), tell_places_apart_(tell_places_apart) {
  intern({});
  for (std::uint32_t frame = 0; frame < stacks.frames().size(); ++frame) add_frame(frame);
  first_.push_back(static_cast<std::uint32_t>(labels_.size()));
  if (!skip.empty()) {
    const std::regex expression = expression_of(skip);
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (std::regex_search(texts_[i], expression)) wrapper_[i] = true;
    }
  }
  choose_speakers(show_wrappers);
}

std::span<const Label> Labels::of_frame(std::uint32_t frame) const {
  return std::span(labels_).subspan(first_[frame], first_[frame + 1] - first_[frame]);
}

std::uint32_t Labels::intern(std::string_view text) {
  const auto [place, is_new] = index_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
  if (is_new) {
    texts_.emplace_back(text);
    wrapper_.push_back(is_wrapper(text));
  }
  return place->second;
}

void Labels::add_frame(std::uint32_t frame) {
  first_.push_back(static_cast<std::uint32_t>(labels_.size()));
  const journal::Frame& where = stacks_.frames()[frame];
  if (where.module == journal::end_marker) {
    labels_.push_back({intern("[stack incomplete: " + std::string(journal::stack_end_text(where.address)) + "]"), 0, 0,
                       intern("[incomplete]")});
    return;
  }
  const bool generated = where.module == journal::no_module;
  const std::string module(generated ? "[generated code]" : file_name(stacks_.modules()[where.module].path));
  const std::uint32_t module_text = intern(module);
  const std::string place = module + journal::place_name(where.address);
  for (const journal::Function& function : stacks_.names(frame)) {
    std::string name = stacks_.text(function.name);
    const bool is_start = journal::is_place_name(name);
    if (is_start) name.insert(0, module);
    const std::uint32_t file =
        intern(is_start && tell_places_apart_ && function.line == 0 ? place : stacks_.text(function.file));
    labels_.push_back({intern(name.empty() ? place : name), file, function.line, module_text});
  }
  if (labels_.size() == first_.back()) {
    labels_.push_back({intern(generated ? journal::place_name(where.address).substr(1) : place), 0, 0, module_text});
  }
}

void Labels::choose_speakers(bool show_wrappers) {
  constexpr std::uint32_t nobody = journal::no_node;
  const auto nodes = stacks_.nodes();
  std::vector<std::uint32_t> found(nodes.size(), nobody);
  speakers_.resize(nodes.size());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const std::uint32_t frame = nodes[i].frame;
    const std::uint32_t first = first_[frame];
    if (stacks_.frames()[frame].module != journal::end_marker) {
      for (std::uint32_t at = first; at < first_[frame + 1] && found[i] == nobody; ++at) {
        if (show_wrappers || !wrapper_[labels_[at].function]) found[i] = at;
      }
    }
    if (found[i] == nobody && nodes[i].parent != journal::no_node) found[i] = found[nodes[i].parent];
    speakers_[i] = found[i] == nobody ? first : found[i];
  }
}

}  // namespace blockyard::sites
