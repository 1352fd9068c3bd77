#include "names/demangle.hpp"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#ifdef BLOCKYARD_LIBIBERTY
#include <libiberty/demangle.h>
#endif

namespace blockyard::names {
namespace {

struct Free {
  void operator()(char* text) const { std::free(text); }
};

constexpr std::string_view rust_hash = "::h";
constexpr std::size_t rust_hash_digits = 16;

/// Whether a legacy Rust symbol's last part is its hash: 17h and 16 lower-case hexadecimal digits.
bool ends_in_rust_hash(std::string_view text) {
  if (text.size() < rust_hash.size() + rust_hash_digits) return false;
  const std::size_t at = text.size() - rust_hash.size() - rust_hash_digits;
  return text.substr(at, rust_hash.size()) == rust_hash &&
         text.find_first_not_of("0123456789abcdef", at + rust_hash.size()) == std::string_view::npos;
}

/// Legacy Rust symbols are C++ names whose punctuation is spelled out: $LT$ is '<', $u20$ a space, '..' is '::'.
std::string decode_legacy_rust(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, char>, 8> escapes{{{"$LT$", '<'},
                                                                             {"$GT$", '>'},
                                                                             {"$RF$", '&'},
                                                                             {"$BP$", '*'},
                                                                             {"$LP$", '('},
                                                                             {"$RP$", ')'},
                                                                             {"$SP$", '@'},
                                                                             {"$C$", ','}}};
  text.remove_suffix(rust_hash.size() + rust_hash_digits);
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("..")) {
      out += "::";
      i += 2;
      continue;
    }
    if (rest.starts_with("_$") && (out.empty() || out.ends_with("::"))) {
      ++i;  // a part may not begin with punctuation, so an underscore precedes it
      continue;
    }
    bool decoded = false;
    for (const auto& [escape, character] : escapes) {
      if (!rest.starts_with(escape)) continue;
      out += character;
      i += escape.size();
      decoded = true;
      break;
    }
    if (decoded) continue;
    const std::size_t end = rest.find('$', 1);
    if (rest.starts_with("$u") && end != std::string_view::npos) {
      const std::string digits(rest.substr(2, end - 2));
      char* rest_of_digits = nullptr;
      const unsigned long code = std::strtoul(digits.c_str(), &rest_of_digits, 16);
      if (*rest_of_digits == '\0' && code >= ' ' && code < 0x7f) {
        out += static_cast<char>(code);
        i += end + 1;
        continue;
      }
    }
    out += text[i++];
  }
  return out;
}

/// Compilers split and copy functions; the parts are called after the function: name.cold, name.isra.0.
std::string_view without_clone_suffix(std::string_view symbol) {
  for (const std::string_view suffix : {".isra.", ".constprop.", ".part.", ".cold", ".lto_priv.", ".llvm."}) {
    const std::size_t at = symbol.find(suffix);
    if (at != std::string_view::npos && at != 0) symbol = symbol.substr(0, at);
  }
  return symbol;
}

#ifdef BLOCKYARD_LIBIBERTY
std::string demangle_rust_v0(const std::string& symbol) {
  const std::unique_ptr<char, Free> text(rust_demangle(symbol.c_str(), DMGL_AUTO));
  return text ? std::string(text.get()) : symbol;
}
std::string demangle_d(const std::string& symbol) {
  const std::unique_ptr<char, Free> text(dlang_demangle(symbol.c_str(), DMGL_DLANG));
  return text ? std::string(text.get()) : symbol;
}
#else
std::string demangle_rust_v0(const std::string& symbol) { return symbol; }
std::string demangle_d(const std::string& symbol) { return symbol; }
#endif

/// GNU Fortran writes __MODULE_MOD_PROCEDURE.
std::string demangle_fortran(std::string_view symbol) {
  constexpr std::string_view between = "_MOD_";
  const std::size_t at = symbol.find(between);
  if (!symbol.starts_with("__") || at == std::string_view::npos || at <= 2) return std::string(symbol);
  return std::string(symbol.substr(2, at - 2)).append("::").append(symbol.substr(at + between.size()));
}

}  // namespace

std::string demangle(std::string_view symbol) {
  symbol = without_clone_suffix(symbol);
  std::string text(symbol);
  if (symbol.starts_with("_R")) return demangle_rust_v0(text);
  if (symbol.starts_with("_D")) return demangle_d(text);
  if (symbol.starts_with("__") && !symbol.starts_with("__Z")) return demangle_fortran(symbol);
  if (!symbol.starts_with("_Z") && !symbol.starts_with("__Z")) return text;
  int status = 0;
  const std::unique_ptr<char, Free> found(abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status));
  if (status != 0 || found == nullptr) return text;
  const std::string_view name = found.get();
  return ends_in_rust_hash(name) ? decode_legacy_rust(name) : std::string(name);
}

}  // namespace blockyard::names
