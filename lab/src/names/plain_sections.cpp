#include "names/plain_sections.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace blockyard::names {
namespace {

/// Of the gABI; glibc's elf.h has it since 2.37.
constexpr std::uint32_t compressed_by_zstd = 2;
/// What a section may become. A damaged size must not fill the memory.
constexpr std::uint64_t most_bytes = std::uint64_t{16} << 30;

class Mapped {
 public:
  explicit Mapped(int file) {
    struct stat facts {};
    if (::fstat(file, &facts) != 0 || facts.st_size <= 0) return;
    const auto size = static_cast<std::size_t>(facts.st_size);
    void* const place = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (place != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(place), size};
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

template <typename T>
bool read(std::span<const std::byte> bytes, std::uint64_t at, T& value) {
  if (at > bytes.size() || bytes.size() - at < sizeof value) return false;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return true;
}

/// The section headers of a 64-bit file of this machine's byte order; empty for any other.
std::vector<Elf64_Shdr> sections_of(std::span<const std::byte> bytes, Elf64_Ehdr& head) {
  if (!read(bytes, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
      head.e_shentsize != sizeof(Elf64_Shdr)) {
    return {};
  }
  std::uint64_t count = head.e_shnum;
  Elf64_Shdr section;
  if (count == 0 && head.e_shoff != 0 && read(bytes, head.e_shoff, section)) count = section.sh_size;
  std::vector<Elf64_Shdr> sections;
  for (std::uint64_t i = 0; i < count && read(bytes, head.e_shoff + i * sizeof section, section); ++i) {
    sections.push_back(section);
  }
  return sections;
}

bool is_zstd(std::span<const std::byte> bytes, const Elf64_Shdr& section, Elf64_Chdr& head) {
  return (section.sh_flags & SHF_COMPRESSED) != 0 && section.sh_type != SHT_NOBITS &&
         read(bytes, section.sh_offset, head) && head.ch_type == compressed_by_zstd;
}

bool write_all(int file, const void* from, std::size_t size, std::uint64_t at) {
  const auto* next = static_cast<const std::byte*>(from);
  while (size != 0) {
    const ssize_t done = ::pwrite(file, next, size, static_cast<off_t>(at));
    if (done <= 0) return false;
    next += done;
    at += static_cast<std::uint64_t>(done);
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

}  // namespace

bool has_zstd_sections(int file) {
  const Mapped mapped(file);
  Elf64_Ehdr head;
  Elf64_Chdr compressed;
  for (const Elf64_Shdr& section : sections_of(mapped.bytes(), head)) {
    if (is_zstd(mapped.bytes(), section, compressed)) return true;
  }
  return false;
}

int with_plain_sections(int file, std::string& problem) {
  const Mapped mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  Elf64_Ehdr head;
  std::vector<Elf64_Shdr> sections = sections_of(bytes, head);
  const int copy = ::memfd_create("blockyard-names", MFD_CLOEXEC);
  const auto fail = [&](const char* what) {
    problem = what;
    if (copy >= 0) ::close(copy);
    return -1;
  };
  if (copy < 0 || !write_all(copy, bytes.data(), bytes.size(), 0)) {
    return fail("there is no memory for its debug information");
  }
  std::uint64_t end = bytes.size();
  std::vector<std::byte> plain;
  for (Elf64_Shdr& section : sections) {
    Elf64_Chdr compressed;
    if (!is_zstd(bytes, section, compressed)) continue;
    const std::uint64_t begin = section.sh_offset + sizeof compressed;
    if (section.sh_size < sizeof compressed || section.sh_size > bytes.size() - section.sh_offset ||
        compressed.ch_size > most_bytes) {
      return fail("its compressed debug information is damaged");
    }
    plain.resize(compressed.ch_size);
    const std::size_t got =
        ZSTD_decompress(plain.data(), plain.size(), bytes.data() + begin, section.sh_size - sizeof compressed);
    if (ZSTD_isError(got) != 0 || got != plain.size()) return fail("its compressed debug information is damaged");
    if (!write_all(copy, plain.data(), plain.size(), end)) return fail("there is no memory for its debug information");
    section.sh_offset = end;
    section.sh_size = plain.size();
    section.sh_flags &= ~std::uint64_t{SHF_COMPRESSED};
    section.sh_addralign = compressed.ch_addralign;
    end += plain.size();
  }
  if (!write_all(copy, sections.data(), sections.size() * sizeof(Elf64_Shdr), head.e_shoff)) {
    return fail("there is no memory for its debug information");
  }
  return copy;
}

}  // namespace blockyard::names
