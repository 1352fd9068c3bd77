// A module's functions by address, from its symbol tables.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace blockyard::names {

/// .symtab of the module or of its debug file, .dynsym, and the compressed table of .gnu_debugdata: what libdwfl finds.
/// O(n log n) to make, O(log n) to ask.
class SymbolTable {
 public:
  explicit SymbolTable(Dwfl_Module* module);

  struct Symbol {
    std::uint64_t begin;
    std::uint64_t end;
    const char* name;  ///< mangled, without a version; lives as long as the module
  };
  /// The function that holds the address, or null. A function without a size reaches to the next symbol of its section.
  const Symbol* find(std::uint64_t address) const;
  /// Whether there are functions that are not exported.
  bool has_local() const { return has_local_; }
  bool empty() const { return symbols_.empty(); }

 private:
  std::vector<Symbol> symbols_;  ///< by begin, one for each
  bool has_local_ = false;
};

}  // namespace blockyard::names
