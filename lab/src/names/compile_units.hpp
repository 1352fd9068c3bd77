// Which functions hold an address, inlined ones included, from DWARF.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "names/resolver.hpp"

namespace blockyard::names {

/// A range of addresses that belongs to `value`.
template <typename T>
struct Range {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t most_end;  ///< the highest end of this and all ranges before: where looking back may stop
  T value;
};

class CompileUnits;

/// The functions of one compile unit. Walks the unit's tree once, however many addresses are asked for.
class CompileUnit {
 public:
  /// `unit` is the unit's own entry; in split DWARF the skeleton's, whose .dwo file libdw opens here. `all` names what
  /// other units declare.
  CompileUnit(Dwarf_Die unit, CompileUnits& all);

  /// The functions at an address of the unit. Where the unit does not describe the function, only file and line of the
  /// innermost one are set, and its name is empty.
  Functions find(std::uint64_t address);
  /// A split unit whose .dwo file is missing: there are lines, but no inlined functions. The file's name, else empty.
  const std::string& missing_dwo() const { return missing_dwo_; }

 private:
  static constexpr std::uint32_t no_scope = 0;
  struct Scope {
    std::uint32_t parent;
    std::string name;
    Dwarf_Die function{};  ///< that a class belongs to; without an address where there is none
  };

  void visit(Dwarf_Die* parent, std::uint32_t scope, int depth, Dwarf_Die* function = nullptr);
  void add_function(Dwarf_Die* die, std::uint32_t scope);
  std::uint32_t add_scope(std::uint32_t parent, Dwarf_Die* die, Dwarf_Die* function);
  std::string unnamed_type(Dwarf_Die* die, Dwarf_Die* function);
  std::string name_of(Dwarf_Die* die) const;
  std::string qualified(Dwarf_Die* die) const;
  std::string scope_text(Dwarf_Die* entry) const;
  void set_place(Dwarf_Die* die, unsigned file, unsigned line, Function& place) const;

  CompileUnits& all_;
  Dwarf_Die skeleton_;
  Dwarf_Die unit_;
  int language_ = 0;  ///< DW_LANG_...
  std::vector<Scope> scopes_;
  std::map<Dwarf_Off, std::uint32_t> lambdas_;                 ///< how many were met, by function
  std::vector<std::pair<Dwarf_Off, std::uint32_t>> scope_of_;  ///< functions' entries, by offset
  std::vector<Range<Dwarf_Die>> functions_;                    ///< by begin
  std::string missing_dwo_;
};

/// All compile units of a module's DWARF by address.
class CompileUnits {
 public:
  /// Reads the ranges of every unit, not their trees.
  explicit CompileUnits(Dwarf* dwarf);

  /// The unit that holds the address, or null. Units that were met are kept: their ranges interleave.
  CompileUnit* find(std::uint64_t address);
  /// The unit that an entry stands in, or null.
  const CompileUnit* of(const Dwarf_Die& die);
  bool empty() const { return ranges_.empty(); }

 private:
  CompileUnit& met(const Dwarf_Die& unit);

  std::vector<Range<Dwarf_Die>> ranges_;
  std::map<const Dwarf_CU*, std::unique_ptr<CompileUnit>> units_;  ///< of split units, the skeletons
};

}  // namespace blockyard::names
