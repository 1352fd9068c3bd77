#include "record/linux/program_symbols.hpp"

#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace blockyard::record {
namespace {

int take_bias(dl_phdr_info* object, std::size_t, void* bias) {
  *static_cast<std::uint64_t*>(bias) = object->dlpi_addr;
  return 1;  // the first is the program
}

}  // namespace

ProgramSymbols::ProgramSymbols() {
  dl_iterate_phdr(take_bias, &bias_);
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (file >= 0 && fstat(file, &facts) == 0 && facts.st_size > 0) {
    bytes_ = static_cast<std::size_t>(facts.st_size);
    void* memory = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory != MAP_FAILED) base_ = static_cast<const std::byte*>(memory);
  }
  if (file >= 0) close(file);
  if (base_ != nullptr) find();
}

ProgramSymbols::~ProgramSymbols() {
  if (base_ != nullptr) munmap(const_cast<std::byte*>(base_), bytes_);
}

void ProgramSymbols::find() {
  const auto* header = at<ElfW(Ehdr)>(0, 1);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return;
  const auto* sections = at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  for (unsigned i = 0; sections != nullptr && i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= header->e_shnum) continue;
    const ElfW(Shdr)& strings = sections[sections[i].sh_link];
    const std::uint64_t count = sections[i].sh_size / sizeof(ElfW(Sym));
    symbols_ = at<ElfW(Sym)>(sections[i].sh_offset, count);
    strings_ = at<char>(strings.sh_offset, strings.sh_size);
    strings_bytes_ = strings.sh_size;
    if (symbols_ != nullptr && strings_ != nullptr && strings_bytes_ != 0 && strings_[strings_bytes_ - 1] == '\0')
      count_ = count;
  }
}

}  // namespace blockyard::record
