#include "names/symbol_table.hpp"

#include <gelf.h>

#include <algorithm>
#include <cstring>

namespace blockyard::names {
namespace {

struct Found {
  std::uint64_t begin;
  std::uint64_t size;
  const char* name;
  GElf_Word section;
  int rank;  ///< of symbols at one address the highest is kept
};

/// A sized symbol tells more than one without a size, a global one is the name that a program's author knows, and a
/// weak one is often an alias of it.
int rank_of(const GElf_Sym& symbol, const char* name) {
  const int binding = GELF_ST_BIND(symbol.st_info);
  int rank = symbol.st_size != 0 ? 8 : 0;
  if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC) rank += 4;
  if (binding == STB_GLOBAL) rank += 2;
  if (binding == STB_WEAK) rank += 1;
  if (name[0] == '_' && name[1] == '_') rank -= 3;  // __libc_malloc is malloc
  return rank;
}

bool is_code(const GElf_Sym& symbol) {
  const int type = GELF_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS &&
         (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

}  // namespace

SymbolTable::SymbolTable(Dwfl_Module* module) {
  std::vector<Found> found;
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    const char* name = dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
    if (name == nullptr || name[0] == '\0' || !is_code(symbol)) continue;
    found.push_back({address, symbol.st_size, name, section, rank_of(symbol, name)});
    if (GELF_ST_BIND(symbol.st_info) == STB_LOCAL && GELF_ST_TYPE(symbol.st_info) == STT_FUNC) has_local_ = true;
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.begin != b.begin ? a.begin < b.begin : a.rank > b.rank; });
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Found& one = found[i];
    if (i != 0 && found[i - 1].begin == one.begin) continue;
    std::uint64_t end = one.begin + one.size;
    if (one.size == 0) {
      std::size_t next = i;
      while (next < found.size() && found[next].begin == one.begin) ++next;
      if (next < found.size() && found[next].section == one.section) end = found[next].begin;
    }
    symbols_.push_back({one.begin, end, one.name});
  }
}

const SymbolTable::Symbol* SymbolTable::find(std::uint64_t address) const {
  auto at = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                             [](std::uint64_t wanted, const Symbol& symbol) { return wanted < symbol.begin; });
  // A label inside of a function hides it, so one look is not enough; functions do not nest deeper than a few labels.
  constexpr int labels = 16;
  for (int i = 0; i < labels && at != symbols_.begin(); ++i) {
    --at;
    if (address < at->end) return &*at;
  }
  return nullptr;
}

}  // namespace blockyard::names
