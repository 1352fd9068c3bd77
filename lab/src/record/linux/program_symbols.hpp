// What the program's own symbol table names, of which it need export nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include <elf.h>
#include <link.h>

namespace blockyard::record {

/// The table lies in the program's file: the loader does not map it.
class ProgramSymbols {
 public:
  ProgramSymbols();
  ~ProgramSymbols();
  ProgramSymbols(const ProgramSymbols&) = delete;
  ProgramSymbols& operator=(const ProgramSymbols&) = delete;

  /// Calls `each(name, address)` for what the program defines of this type.
  template <typename Each>
  void for_each(unsigned type, Each each) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const ElfW(Sym)& symbol = symbols_[i];
      if ((symbol.st_info & 0xf) == type && symbol.st_shndx != SHN_UNDEF && symbol.st_name < strings_bytes_)
        each(strings_ + symbol.st_name, reinterpret_cast<void*>(bias_ + symbol.st_value));
    }
  }

 private:
  template <typename Record>
  const Record* at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > bytes_ || count > (bytes_ - offset) / sizeof(Record)) return nullptr;
    return reinterpret_cast<const Record*>(base_ + offset);
  }
  void find();

  std::uint64_t bias_ = 0;  ///< what the loader added
  const std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  std::size_t count_ = 0;
  const char* strings_ = nullptr;
  std::size_t strings_bytes_ = 0;
};

}  // namespace blockyard::record
