#include "names/compile_units.hpp"

#include <dwarf.h>

#include <algorithm>
#include <cstring>

#include "names/demangle.hpp"

namespace blockyard::names {
namespace {

/// Deeper trees are no program's; the limit keeps a damaged file from filling the stack.
constexpr int most_depth = 200;

template <typename T>
void sort(std::vector<Range<T>>& ranges) {
  // Of ranges with one begin the longest comes first, so that looking back meets the innermost one first.
  std::stable_sort(ranges.begin(), ranges.end(), [](const Range<T>& a, const Range<T>& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::uint64_t most = 0;
  for (Range<T>& range : ranges) range.most_end = most = std::max(most, range.end);
}

template <typename T>
Range<T>* find(std::vector<Range<T>>& ranges, std::uint64_t address) {
  auto at = std::upper_bound(ranges.begin(), ranges.end(), address,
                             [](std::uint64_t wanted, const Range<T>& range) { return wanted < range.begin; });
  while (at != ranges.begin()) {
    --at;
    if (at->most_end <= address) return nullptr;
    if (address < at->end) return &*at;
  }
  return nullptr;
}

/// Adds the ranges of an entry. Address 0 is where linkers put the functions that they left out.
template <typename T>
void add_ranges(Dwarf_Die* die, const T& value, std::vector<Range<T>>& out) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  for (std::ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &begin, &end)) > 0;) {
    if (begin > 1 && end > begin) out.push_back({begin, end, 0, value});
  }
}

const char* text_of(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Attribute* found = dwarf_attr_integrate(die, name, &attribute);
  return found == nullptr ? nullptr : dwarf_formstring(found);
}

/// The entry that says what the function is called: follows "instance of" and "definition of".
Dwarf_Die origin_of(Dwarf_Die die) {
  constexpr int most_links = 16;
  for (int i = 0; i < most_links; ++i) {
    Dwarf_Attribute attribute;
    Dwarf_Die target;
    if ((dwarf_attr(&die, DW_AT_abstract_origin, &attribute) == nullptr &&
         dwarf_attr(&die, DW_AT_specification, &attribute) == nullptr) ||
        dwarf_formref_die(&attribute, &target) == nullptr) {
      break;
    }
    die = target;
  }
  return die;
}

}  // namespace

CompileUnit::CompileUnit(Dwarf_Die unit, CompileUnits& all) : all_(all), skeleton_(unit), unit_(unit) {
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  Dwarf_Die split{};
  if (dwarf_cu_info(unit.cu, &version, &type, nullptr, &split, nullptr, nullptr, nullptr) == 0 &&
      type == DW_UT_skeleton) {
    if (split.addr != nullptr && dwarf_tag(&split) == DW_TAG_compile_unit) {
      unit_ = split;
    } else {
      const char* name = text_of(&unit, DW_AT_dwo_name);
      if (name == nullptr) name = text_of(&unit, DW_AT_GNU_dwo_name);
      missing_dwo_ = name == nullptr ? "the unit's .dwo file" : name;
    }
  }
  language_ = dwarf_srclang(&unit_);
  scopes_.push_back({no_scope, {}});
  visit(&unit_, no_scope, 0);
  sort(functions_);
  std::sort(scope_of_.begin(), scope_of_.end());
}

void CompileUnit::visit(Dwarf_Die* parent, std::uint32_t scope, int depth, Dwarf_Die* function) {
  Dwarf_Die die;
  if (depth > most_depth || dwarf_child(parent, &die) != 0) return;
  do {
    switch (dwarf_tag(&die)) {
      case DW_TAG_subprogram:
        add_function(&die, scope);
        // A function's own classes may have functions, such as a lambda's.
        visit(&die, scope, depth + 1, &die);
        break;
      case DW_TAG_lexical_block:
        visit(&die, scope, depth + 1, function);
        break;
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
      case DW_TAG_enumeration_type:
      case DW_TAG_interface_type:
        visit(&die, add_scope(scope, &die, function), depth + 1);
        break;
      default:
        break;
    }
  } while (dwarf_siblingof(&die, &die) == 0);
}

std::uint32_t CompileUnit::add_scope(std::uint32_t parent, Dwarf_Die* die, Dwarf_Die* function) {
  // A member of a class that is defined elsewhere keeps the class's scope there.
  const char* name = dwarf_diename(die);
  std::string text = name == nullptr ? "" : name;
  if (name == nullptr)
    text = dwarf_tag(die) == DW_TAG_namespace ? "(anonymous namespace)" : unnamed_type(die, function);
  scopes_.push_back({parent, std::move(text), function == nullptr ? Dwarf_Die{} : *function});
  return static_cast<std::uint32_t>(scopes_.size() - 1);
}

/// GCC gives lambdas no name. The demangler's form: a number in their function, or where they stand.
std::string CompileUnit::unnamed_type(Dwarf_Die* die, Dwarf_Die* function) {
  Dwarf_Die child;
  bool is_lambda = false;
  for (int more = dwarf_child(die, &child); more == 0 && !is_lambda; more = dwarf_siblingof(&child, &child)) {
    const char* const name = dwarf_tag(&child) == DW_TAG_subprogram ? dwarf_diename(&child) : nullptr;
    is_lambda = name != nullptr && std::strcmp(name, "operator()") == 0;
  }
  if (is_lambda && function != nullptr) {
    return "{lambda#" + std::to_string(++lambdas_[dwarf_dieoffset(function)]) + "}";
  }
  Function place;
  set_place(die, DW_AT_decl_file, DW_AT_decl_line, place);
  if (place.line == 0) return is_lambda ? "{lambda}" : "{unnamed type}";
  return std::string(is_lambda ? "{lambda at " : "{unnamed type at ") + place.file.substr(place.file.rfind('/') + 1) +
         ":" + std::to_string(place.line) + "}";
}

void CompileUnit::add_function(Dwarf_Die* die, std::uint32_t scope) {
  if (scope != no_scope) scope_of_.emplace_back(dwarf_dieoffset(die), scope);
  add_ranges(die, *die, functions_);
}

std::string CompileUnit::scope_text(Dwarf_Die* entry) const {
  if (entry->cu != unit_.cu) return {};  // of a split unit the skeleton's own entries are not in its tree
  const Dwarf_Off offset = dwarf_dieoffset(entry);
  const auto at = std::lower_bound(scope_of_.begin(), scope_of_.end(), std::pair{offset, no_scope});
  if (at == scope_of_.end() || at->first != offset) return {};
  std::string text;
  for (std::uint32_t scope = at->second; scope != no_scope; scope = scopes_[scope].parent) {
    text.insert(0, "::");
    text.insert(0, scopes_[scope].name);
    if (scopes_[scope].function.addr == nullptr) continue;
    // A class of a function: the function's name has the scopes around it.
    Dwarf_Die function = scopes_[scope].function;
    std::string name = name_of(&function);
    name += name.ends_with(')') || name.ends_with(" const") ? "::" : "()::";
    name += text;
    return name;
  }
  return text;
}

std::string CompileUnit::qualified(Dwarf_Die* die) const {
  Dwarf_Die origin = origin_of(*die);
  const char* name = dwarf_diename(&origin);
  if (name == nullptr) return {};
  // Functions are optimized together by the linker, and moved by dwz.
  const CompileUnit* unit = origin.cu == unit_.cu ? this : all_.of(origin);
  return (unit == nullptr ? std::string() : unit->scope_text(&origin)) + name;
}

std::string CompileUnit::name_of(Dwarf_Die* die) const {
  const char* linkage = text_of(die, DW_AT_linkage_name);
  if (linkage == nullptr) linkage = text_of(die, DW_AT_MIPS_linkage_name);
  std::string of_symbol = linkage == nullptr ? std::string() : demangle(linkage);
  // What the demangler of this build does not know, the tree does.
  const bool is_mangled = of_symbol.empty() || of_symbol == linkage;
  if (!is_mangled && language_ != DW_LANG_Rust) return of_symbol;
  std::string of_tree = qualified(die);
  // Rust's tree has the arguments of generics, and numbers for `impl` blocks, whose types the symbol has.
  const bool hides_type = of_tree.find("{impl#") != std::string::npos && !is_mangled;
  return of_tree.empty() || hides_type ? of_symbol : of_tree;
}

void CompileUnit::set_place(Dwarf_Die* die, unsigned file, unsigned line, Function& place) const {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  if (dwarf_formudata(dwarf_attr(die, line, &attribute), &number) == 0) {
    place.line = static_cast<std::uint32_t>(number);
  }
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  Dwarf_Die unit = unit_;
  if (dwarf_formudata(dwarf_attr(die, file, &attribute), &number) == 0 &&
      dwarf_getsrcfiles(&unit, &files, &count) == 0 && number < count) {
    const char* name = dwarf_filesrc(files, number, nullptr, nullptr);
    if (name != nullptr) place.file = name;
  }
}

Functions CompileUnit::find(std::uint64_t address) {
  std::vector<Dwarf_Die> chain;  // the function, then what was inlined into it
  if (Range<Dwarf_Die>* range = names::find(functions_, address); range != nullptr) {
    chain.push_back(range->value);
    Dwarf_Die child;
    int depth = 0;
    for (int more = dwarf_child(&range->value, &child); more == 0 && depth < most_depth;) {
      const int tag = dwarf_tag(&child);
      const bool holds_code = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
                              tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
      if (!holds_code || dwarf_haspc(&child, address) != 1) {
        more = dwarf_siblingof(&child, &child);
        continue;
      }
      if (tag == DW_TAG_inlined_subroutine) chain.push_back(child);
      ++depth;
      Dwarf_Die inner;
      more = dwarf_child(&child, &inner);
      child = inner;
    }
  }
  Functions functions(std::max<std::size_t>(chain.size(), 1));
  Dwarf_Die lines_of = skeleton_;  // split units have their lines in the skeleton
  if (Dwarf_Line* line = dwarf_getsrc_die(&lines_of, address); line != nullptr) {
    int number = 0;
    if (const char* file = dwarf_linesrc(line, nullptr, nullptr); file != nullptr) functions[0].file = file;
    if (dwarf_lineno(line, &number) == 0 && number > 0) functions[0].line = static_cast<std::uint32_t>(number);
  }
  for (std::size_t i = 0; i < chain.size(); ++i) {
    Dwarf_Die* die = &chain[chain.size() - 1 - i];
    functions[i].name = name_of(die);
    if (i + 1 < chain.size()) set_place(die, DW_AT_call_file, DW_AT_call_line, functions[i + 1]);
  }
  return functions;
}

CompileUnits::CompileUnits(Dwarf* dwarf) {
  Dwarf_CU* unit = nullptr;
  std::uint8_t type = 0;
  Dwarf_Die die;
  while (dwarf_get_units(dwarf, unit, &unit, nullptr, &type, &die, nullptr) == 0) {
    if (type == DW_UT_compile || type == DW_UT_skeleton) add_ranges(&die, die, ranges_);
  }
  sort(ranges_);
}

CompileUnit* CompileUnits::find(std::uint64_t address) {
  Range<Dwarf_Die>* range = names::find(ranges_, address);
  if (range == nullptr) return nullptr;
  return &met(range->value);
}

const CompileUnit* CompileUnits::of(const Dwarf_Die& die) {
  Dwarf_Die entry = die;
  Dwarf_Die unit;
  return dwarf_diecu(&entry, &unit, nullptr, nullptr) == nullptr ? nullptr : &met(unit);
}

CompileUnit& CompileUnits::met(const Dwarf_Die& unit) {
  std::unique_ptr<CompileUnit>& found = units_[unit.cu];
  if (found == nullptr) found = std::make_unique<CompileUnit>(unit, *this);
  return *found;
}

}  // namespace blockyard::names
