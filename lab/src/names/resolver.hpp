// Turns addresses of modules into functions and source lines, inlined functions included. Reads ELF, DWARF 2 to 5 and
// symbol tables with elfutils' libdw; docs/reference/names.md says why.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "names/debug_files.hpp"

namespace blockyard::names {

/// One function at an address. `line` is the line of the call for all but the innermost function.
struct Function {
  std::string name;        ///< demangled; where it begins, as journal::place_name() writes it, when nothing names it
  std::string file;        ///< source file; empty when unknown
  std::uint32_t line = 0;  ///< from 1; 0 when unknown

  bool operator==(const Function&) const = default;
};

/// The functions at one address, from the innermost inlined one to the one that holds the code. Empty when unknown.
using Functions = std::vector<Function>;

struct Options {
  std::vector<std::string> debug_folders;  ///< searched for debug files before the system's folders
  bool ask_servers = false;                ///< let libdw ask the debuginfod servers in DEBUGINFOD_URLS
};

/// How much is known of a module's code.
enum class Symbols {
  lines,    ///< functions, inlined functions, files and lines
  symbols,  ///< function names from a symbol table
  exports,  ///< names of exported functions alone
  none,
};

struct Resolved {
  std::vector<Functions> functions;  ///< one for each address that was asked for
  Symbols symbols = Symbols::none;
  std::string problem;  ///< why there are no lines: one sentence without its stop; empty with lines
};

/// Resolves one module after the other. Keeps nothing of a module when it has resolved its addresses, so that memory is
/// bounded by the largest one. One thread at a time.
class Resolver {
 public:
  /// Forbids libdw to ask servers unless `options.ask_servers`: this changes the environment of the process.
  explicit Resolver(const Options& options);

  /// What the addresses, relative to the module's load bias, are. `build_id` is hexadecimal; a file with another one is
  /// never used. With an empty `build_id` the file at `path` is taken at its word.
  Resolved resolve(const std::string& path, const std::string& build_id, std::span<const std::uint64_t> addresses);

 private:
  Options options_;
  DebugFiles files_;
};

}  // namespace blockyard::names
