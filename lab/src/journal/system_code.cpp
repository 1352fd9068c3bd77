#include "journal/system_code.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace blockyard::journal {
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

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && path.substr(folder.size()).starts_with('/');
}

}  // namespace

bool is_wrapper(std::string_view function) {
  static constexpr std::array<std::string_view, 14> names{
      "malloc", "calloc",  "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign",
      "valloc", "pvalloc", "strdup",  "strndup",      "xmalloc",        "xcalloc",       "xrealloc"};
  static constexpr std::array<std::string_view, 21> prefixes{
      anonymous_wrapper, "std::", "__gnu_cxx::", "__cxx", "operator new",
      "alloc::", "core::", "<alloc::", "<core::", "<std::", "__rust_",
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
         // An allocator of a crate, and what the compiler makes of `#[global_allocator]`.
         name.find(" as core::alloc::global::GlobalAlloc>::") != std::string_view::npos ||
         name.find("::_::__rust_") != std::string_view::npos || is_operator_new_of_a_class(name);
}

bool starts_program(std::string_view function) {
  return function.starts_with("__libc_start") || function == "_start" || function == "__tmainCRTStartup";
}

bool is_of_system(const std::string& path, const std::string& program) {
  static constexpr std::array<std::string_view, 6> folders{"/usr/lib", "/usr/lib64", "/usr/lib32",
                                                           "/lib",     "/lib64",     "/lib32"};
  // Of Windows, as the recorder there writes it: a drive or a device comes first.
  if (path.find("/windows/system32/") != std::string::npos || path.find("/Windows/System32/") != std::string::npos) {
    return true;
  }
  if (path == program || path.starts_with('[')) return path != program;
  if (std::filesystem::path(path).filename().string().starts_with("libblockyard-record.")) return true;
  const std::string beside = std::filesystem::path(program).parent_path().string();
  const auto holds = [](std::string_view one) {
    return std::any_of(folders.begin(), folders.end(), [&](auto folder) { return is_below(one, folder); });
  };
  return holds(path) && !(holds(beside) && is_below(path, beside));
}

}  // namespace blockyard::journal
