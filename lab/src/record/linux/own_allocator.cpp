#include "record/linux/own_allocator.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/observer.hpp"
#include "record/linux/hooks.hpp"
#include "record/linux/imports.hpp"
#include "record/linux/symbols.hpp"

namespace blockyard::record {
namespace {

// ------------------------------------------------------------------------------------------------- the functions

/// A function of an allocator: what it is called behind the allocator's prefix, the real one, and the hook.
struct Function {
  const char* name;
  void* real;
  void* hook;
  bool is_exported = false;  ///< others ask for it by its name
};

template <typename Pointer>
Pointer real_of(unsigned index);

// The order of `functions`.
enum Index : unsigned {
  malloc_,
  free_,
  calloc_,
  realloc_,
  posix_memalign_,
  aligned_alloc_,
  memalign_,
  valloc_,
  pvalloc_,
  mallocx_,
  rallocx_,
  dallocx_,
  sdallocx_,
  zalloc_,
  malloc_aligned_,
  zalloc_aligned_,
  realloc_aligned_,
  free_size_,
  free_aligned_,
  free_size_aligned_,
  free_sized_,
  new_,
  new_nothrow_,
  new_aligned_,
  new_aligned_nothrow_,
  new_array_,
  new_array_nothrow_,
  new_array_aligned_,
  new_array_aligned_nothrow_,
  delete_,
  delete_array_,
  delete_size_,
  delete_array_size_,
  delete_nothrow_,
  delete_array_nothrow_,
  delete_aligned_,
  delete_array_aligned_,
  delete_size_aligned_,
  delete_array_size_aligned_,
  delete_aligned_nothrow_,
  delete_array_aligned_nothrow_,
};

using Allocate = void* (*)(std::size_t);
using AllocateTwo = void* (*)(std::size_t, std::size_t);
using Free = void (*)(void*);

void* own_malloc(std::size_t size) {
  return allocate(RecordKind::allocate, size, 0, BLOCKYARD_FRAME, [=] { return real_of<Allocate>(malloc_)(size); });
}
void own_free(void* block) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] { real_of<Free>(free_)(block); });
}
void* own_calloc(std::size_t count, std::size_t size) {
  return allocate(RecordKind::allocate_zeroed, count * size, 0, BLOCKYARD_FRAME,
                  [=] { return real_of<AllocateTwo>(calloc_)(count, size); });
}
void* own_realloc(void* block, std::size_t size) {
  return reallocate<Owner::other>(block, size, BLOCKYARD_FRAME,
                                  [=] { return real_of<void* (*)(void*, std::size_t)>(realloc_)(block, size); });
}
int own_posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  int error = 0;
  allocate(RecordKind::allocate_aligned, size, alignment, BLOCKYARD_FRAME, [&]() -> void* {
    error = real_of<int (*)(void**, std::size_t, std::size_t)>(posix_memalign_)(result, alignment, size);
    return error == 0 ? *result : nullptr;
  });
  return error;
}
template <Index index>
void* own_aligned(std::size_t alignment, std::size_t size) {
  return allocate(RecordKind::allocate_aligned, size, alignment, BLOCKYARD_FRAME,
                  [=] { return real_of<AllocateTwo>(index)(alignment, size); });
}
template <Index index>
void* own_page_aligned(std::size_t size) {
  return allocate(RecordKind::allocate_aligned, size, page_bytes, BLOCKYARD_FRAME,
                  [=] { return real_of<Allocate>(index)(size); });
}

// jemalloc's, whose flags have the alignment's logarithm in six bits, and zeroing in the next.
std::size_t alignment_of(int flags) { return (flags & 63) == 0 ? 0 : std::size_t{1} << (flags & 63); }
void* own_mallocx(std::size_t size, int flags) {
  const std::size_t alignment = alignment_of(flags);
  const RecordKind kind = alignment != 0        ? RecordKind::allocate_aligned
                          : (flags & 0x40) != 0 ? RecordKind::allocate_zeroed
                                                : RecordKind::allocate;
  return allocate(kind, size, alignment, BLOCKYARD_FRAME,
                  [=] { return real_of<void* (*)(std::size_t, int)>(mallocx_)(size, flags); });
}
void* own_rallocx(void* block, std::size_t size, int flags) {
  return reallocate<Owner::other>(block, size, BLOCKYARD_FRAME, [=] {
    return real_of<void* (*)(void*, std::size_t, int)>(rallocx_)(block, size, flags);
  });
}
void own_dallocx(void* block, int flags) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] { real_of<void (*)(void*, int)>(dallocx_)(block, flags); });
}
void own_sdallocx(void* block, std::size_t size, int flags) {
  release<Owner::other>(block, BLOCKYARD_FRAME,
                        [=] { real_of<void (*)(void*, std::size_t, int)>(sdallocx_)(block, size, flags); });
}

// mimalloc's.
void* own_zalloc(std::size_t size) {
  return allocate(RecordKind::allocate_zeroed, size, 0, BLOCKYARD_FRAME,
                  [=] { return real_of<Allocate>(zalloc_)(size); });
}
template <Index index>
void* own_size_aligned(std::size_t size, std::size_t alignment) {
  return allocate(RecordKind::allocate_aligned, size, alignment, BLOCKYARD_FRAME,
                  [=] { return real_of<AllocateTwo>(index)(size, alignment); });
}
void* own_realloc_aligned(void* block, std::size_t size, std::size_t alignment) {
  return reallocate<Owner::other>(block, size, BLOCKYARD_FRAME, [=] {
    return real_of<void* (*)(void*, std::size_t, std::size_t)>(realloc_aligned_)(block, size, alignment);
  });
}
template <Index index>
void own_free_with(void* block, std::size_t fact) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] { real_of<void (*)(void*, std::size_t)>(index)(block, fact); });
}
void own_free_size_aligned(void* block, std::size_t size, std::size_t alignment) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] {
    real_of<void (*)(void*, std::size_t, std::size_t)>(free_size_aligned_)(block, size, alignment);
  });
}

// C++'s. They need not be the allocator's malloc: a program's own may count, or put something in front of each block.
// The hook calls the real one, and what that asks the allocator for is not recorded. An exception must not pass through
// a frame of ours, so it is the form that throws none; only where that fails, the one that throws is called.
using Nothrow = const void*;
template <Index index>
void* try_new(std::size_t size, Nothrow nothrow, const void* frame) {
  return allocate(RecordKind::allocate, size, 0, frame,
                  [=] { return real_of<void* (*)(std::size_t, Nothrow)>(index)(size, nothrow); });
}
template <Index index>
void* try_new_aligned(std::size_t size, std::size_t alignment, Nothrow nothrow, const void* frame) {
  using Real = void* (*)(std::size_t, std::size_t, Nothrow);
  return allocate(RecordKind::allocate_aligned, size, alignment, frame,
                  [=] { return real_of<Real>(index)(size, alignment, nothrow); });
}
template <Index index>
void* own_new_nothrow(std::size_t size, Nothrow nothrow) {
  return try_new<index>(size, nothrow, BLOCKYARD_FRAME);
}
template <Index index>
void* own_new_aligned_nothrow(std::size_t size, std::size_t alignment, Nothrow nothrow) {
  return try_new_aligned<index>(size, alignment, nothrow, BLOCKYARD_FRAME);
}
// std::nothrow of a library that need not be there.
constexpr char no_throw = 0;
template <Index index, Index nothrow>
void* own_new(std::size_t size) {
  void* const block = self.busy != 0 ? nullptr : try_new<nothrow>(size, &no_throw, BLOCKYARD_FRAME);
  return block != nullptr ? block : real_of<Allocate>(index)(size);
}
template <Index index, Index nothrow>
void* own_new_aligned(std::size_t size, std::size_t alignment) {
  void* const block = self.busy != 0 ? nullptr : try_new_aligned<nothrow>(size, alignment, &no_throw, BLOCKYARD_FRAME);
  return block != nullptr ? block : real_of<AllocateTwo>(index)(size, alignment);
}
template <Index index, typename... More>
void own_delete(void* block, More... more) {
  release<Owner::other>(block, BLOCKYARD_FRAME, [=] { real_of<void (*)(void*, More...)>(index)(block, more...); });
}

// Compilers fill the table before anything runs, since it may be needed before our constructors do; no function call in
// it, which GCC leaves to them.
#define BLOCKYARD_HOOK(...) reinterpret_cast<void*>(&__VA_ARGS__)

Function functions[] = {
    {"malloc", nullptr, BLOCKYARD_HOOK(own_malloc)},
    {"free", nullptr, BLOCKYARD_HOOK(own_free)},
    {"calloc", nullptr, BLOCKYARD_HOOK(own_calloc)},
    {"realloc", nullptr, BLOCKYARD_HOOK(own_realloc)},
    {"posix_memalign", nullptr, BLOCKYARD_HOOK(own_posix_memalign)},
    {"aligned_alloc", nullptr, BLOCKYARD_HOOK(own_aligned<aligned_alloc_>)},
    {"memalign", nullptr, BLOCKYARD_HOOK(own_aligned<memalign_>)},
    {"valloc", nullptr, BLOCKYARD_HOOK(own_page_aligned<valloc_>)},
    {"pvalloc", nullptr, BLOCKYARD_HOOK(own_page_aligned<pvalloc_>)},
    {"mallocx", nullptr, BLOCKYARD_HOOK(own_mallocx)},
    {"rallocx", nullptr, BLOCKYARD_HOOK(own_rallocx)},
    {"dallocx", nullptr, BLOCKYARD_HOOK(own_dallocx)},
    {"sdallocx", nullptr, BLOCKYARD_HOOK(own_sdallocx)},
    {"zalloc", nullptr, BLOCKYARD_HOOK(own_zalloc)},
    {"malloc_aligned", nullptr, BLOCKYARD_HOOK(own_size_aligned<malloc_aligned_>)},
    {"zalloc_aligned", nullptr, BLOCKYARD_HOOK(own_size_aligned<zalloc_aligned_>)},
    {"realloc_aligned", nullptr, BLOCKYARD_HOOK(own_realloc_aligned)},
    {"free_size", nullptr, BLOCKYARD_HOOK(own_free_with<free_size_>)},
    {"free_aligned", nullptr, BLOCKYARD_HOOK(own_free_with<free_aligned_>)},
    {"free_size_aligned", nullptr, BLOCKYARD_HOOK(own_free_size_aligned)},
    {"free_sized", nullptr, BLOCKYARD_HOOK(own_free_with<free_sized_>)},
    {"_Znwm", nullptr, BLOCKYARD_HOOK(own_new<new_, new_nothrow_>)},
    {"_ZnwmRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_new_nothrow<new_nothrow_>)},
    {"_ZnwmSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_new_aligned<new_aligned_, new_aligned_nothrow_>)},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_new_aligned_nothrow<new_aligned_nothrow_>)},
    {"_Znam", nullptr, BLOCKYARD_HOOK(own_new<new_array_, new_array_nothrow_>)},
    {"_ZnamRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_new_nothrow<new_array_nothrow_>)},
    {"_ZnamSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_new_aligned<new_array_aligned_, new_array_aligned_nothrow_>)},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", nullptr,
     BLOCKYARD_HOOK(own_new_aligned_nothrow<new_array_aligned_nothrow_>)},
    {"_ZdlPv", nullptr, BLOCKYARD_HOOK(own_delete<delete_>)},
    {"_ZdaPv", nullptr, BLOCKYARD_HOOK(own_delete<delete_array_>)},
    {"_ZdlPvm", nullptr, BLOCKYARD_HOOK(own_delete<delete_size_, std::size_t>)},
    {"_ZdaPvm", nullptr, BLOCKYARD_HOOK(own_delete<delete_array_size_, std::size_t>)},
    {"_ZdlPvRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_nothrow_, Nothrow>)},
    {"_ZdaPvRKSt9nothrow_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_array_nothrow_, Nothrow>)},
    {"_ZdlPvSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_aligned_, std::size_t>)},
    {"_ZdaPvSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_array_aligned_, std::size_t>)},
    {"_ZdlPvmSt11align_val_t", nullptr, BLOCKYARD_HOOK(own_delete<delete_size_aligned_, std::size_t, std::size_t>)},
    {"_ZdaPvmSt11align_val_t", nullptr,
     BLOCKYARD_HOOK(own_delete<delete_array_size_aligned_, std::size_t, std::size_t>)},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", nullptr,
     BLOCKYARD_HOOK(own_delete<delete_aligned_nothrow_, std::size_t, Nothrow>)},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", nullptr,
     BLOCKYARD_HOOK(own_delete<delete_array_aligned_nothrow_, std::size_t, Nothrow>)},
};
#undef BLOCKYARD_HOOK
constexpr std::size_t function_count = sizeof functions / sizeof functions[0];
static_assert(function_count == delete_array_aligned_nothrow_ + 1);

Redirection redirections[3 * function_count];
std::size_t redirection_count = 0;

void redirect(void* from, void* to, const char* name) {
  if (from != nullptr && from != to && redirection_count < sizeof redirections / sizeof redirections[0])
    redirections[redirection_count++] = {from, to, name};
}

template <typename Pointer>
Pointer real_of(unsigned index) {
  return reinterpret_cast<Pointer>(functions[index].real);
}

// ------------------------------------------------------------------------------------------------- finding them

/// An object, by where it was loaded.
struct Wanted {
  const void* inside;  ///< an address in it
  std::size_t changed = 0;
};

bool contains(const dl_phdr_info& object, const void* address) {
  const auto wanted = reinterpret_cast<std::uint64_t>(address);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const std::uint64_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && wanted >= begin && wanted < begin + segment.p_memsz) return true;
  }
  return false;
}

int index_of(const char* name) {
  for (std::size_t i = 0; i < function_count; ++i) {
    if (std::strcmp(functions[i].name, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

// Redirects the operators of which the form that throws nothing is there as well, as allocators have it, and with them
// all that take such a block. Of others, what they ask malloc for is recorded.
void redirect_operators() {
  for (unsigned index = new_; index < function_count; ++index) {
    const Function& function = functions[index];
    const bool is_array = function.name[3] == 'a';  // _Znam, _ZdaPv
    const bool is_aligned = std::strstr(function.name, "align_val_t") != nullptr;
    const unsigned throwing = (is_array ? new_array_ : new_) + (is_aligned ? new_aligned_ - new_ : 0u);
    if (functions[throwing].real != nullptr && functions[throwing + 1].real != nullptr)
      redirect(function.real, function.hook, function.is_exported ? function.name : "");
  }
}

// Whether only an allocator has a function of this name, without a prefix.
bool is_plain(int index) { return index <= static_cast<int>(sdallocx_) || index >= static_cast<int>(new_); }

// The allocators that Rust's crates and C programs link in, by the prefix of their names. Our own heap is the last: a
// program that has it for its pools alone may have another one in malloc's place.
constexpr const char* prefixes[] = {"_rjem_", "je_", "mi_", "rp", "tc_", "by_"};

/// The program's file, for its symbol table: the loader does not map that.
class SymbolTable {
 public:
  SymbolTable() {
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
  ~SymbolTable() {
    if (base_ != nullptr) munmap(const_cast<std::byte*>(base_), bytes_);
  }
  SymbolTable(const SymbolTable&) = delete;
  SymbolTable& operator=(const SymbolTable&) = delete;

  /// Redirects the functions of the allocator with this prefix, if it has one. `bias` is what the loader added. Where
  /// an allocator is known already, only if it is that one under another name. Whether it was.
  bool redirect_allocator(const char* prefix, std::uint64_t bias) const {
    const std::size_t length = std::strlen(prefix);
    void* found[function_count] = {};
    for (std::size_t i = 0; i < count_; ++i) {
      const ElfW(Sym)& symbol = symbols_[i];
      if ((symbol.st_info & 0xf) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_name >= strings_bytes_)
        continue;
      const char* const name = strings_ + symbol.st_name;
      if (std::strncmp(name, prefix, length) != 0) continue;
      const int index = index_of(name + length);
      if (index >= 0 && (length != 0 || is_plain(index)))
        found[index] = reinterpret_cast<void*>(bias + symbol.st_value);
    }
    // A linker leaves out what a program doesn't call: mi_malloc(), in those of Rust.
    const bool gives = found[malloc_] != nullptr || found[mallocx_] != nullptr || found[malloc_aligned_] != nullptr;
    const bool takes = found[free_] != nullptr || found[sdallocx_] != nullptr;
    if (!gives || !takes) return false;
    if (functions[malloc_].real != nullptr && functions[malloc_].real != found[malloc_]) return false;
    for (std::size_t i = 0; i < function_count; ++i) {
      if (functions[i].real == nullptr) functions[i].real = found[i];
      if (i < new_) redirect(found[i], functions[i].hook, "");  // other objects don't ask for it by name
    }
    return true;
  }

  /// Where the program has a variable of this name; nullptr: nowhere.
  void* find(const char* name, std::uint64_t bias) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const ElfW(Sym)& symbol = symbols_[i];
      if ((symbol.st_info & 0xf) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF && symbol.st_name < strings_bytes_ &&
          std::strcmp(strings_ + symbol.st_name, name) == 0)
        return reinterpret_cast<void*>(bias + symbol.st_value);
    }
    return nullptr;
  }

 private:
  template <typename Record>
  const Record* at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > bytes_ || count > (bytes_ - offset) / sizeof(Record)) return nullptr;
    return reinterpret_cast<const Record*>(base_ + offset);
  }

  void find() {
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

  const std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  std::size_t count_ = 0;
  const char* strings_ = nullptr;
  std::size_t strings_bytes_ = 0;
};

int take_bias(dl_phdr_info* object, std::size_t, void* bias) {
  *static_cast<std::uint64_t*>(bias) = object->dlpi_addr;
  return 1;  // the first is the program
}

bool redirect_linked_in(bool is_exported) {
  std::uint64_t bias = 0;
  dl_iterate_phdr(take_bias, &bias);
  const SymbolTable table;
  // What it exports is what other objects ask for; C++'s operators may not be among it.
  bool any = is_exported && table.redirect_allocator("", bias);
  for (const char* prefix : prefixes) {
    if (is_exported || !any) any |= table.redirect_allocator(prefix, bias);
  }
  return any;
}

// ------------------------------------------------------------------------------------------------- changing calls

bool is_ours(const dl_phdr_info& object) { return contains(object, reinterpret_cast<const void*>(&index_of)); }

int rewrite(dl_phdr_info* object, std::size_t, void* data) {
  auto& wanted = *static_cast<Wanted*>(data);
  if (is_ours(*object)) return 0;
  wanted.changed += rewrite_imports(*object, {redirections, redirection_count});
  if (contains(*object, wanted.inside)) wanted.changed += rewrite_calls(*object, {redirections, redirection_count});
  return 0;
}

// Which objects were looked at: a hash table of where they begin. Full, it looks again at those that it has no room
// for. Only what the loader calls for each object touches it, one thread at a time.
constexpr std::size_t most_known = 512;
std::uint64_t known[most_known];
unsigned long long additions = 0;  // of objects, as the loader counts them

bool is_new(std::uint64_t begin) {
  for (std::size_t probe = 0; probe < 8; ++probe) {
    std::uint64_t& entry = known[((begin >> 12) * 0x9e3779b1u + probe) % most_known];
    if (entry == begin) return false;
    if (entry != 0) continue;
    entry = begin;
    return true;
  }
  return true;
}

int rewrite_new(dl_phdr_info* object, std::size_t, void* data) {
  additions = object->dlpi_adds;
  if (is_ours(*object) || is_being_loaded(*object, *static_cast<WritableMemory*>(data))) return 0;
  if (is_new(object->dlpi_addr)) rewrite_imports(*object, {redirections, redirection_count});
  return 0;
}

int note(dl_phdr_info* object, std::size_t, void*) {
  additions = object->dlpi_adds;
  is_new(object->dlpi_addr);
  return 0;
}

// Keeps those that are still there.
int note_again(dl_phdr_info* object, std::size_t, void* data) {
  static std::uint64_t before[most_known];
  bool& is_first = *static_cast<bool*>(data);
  if (is_first) {
    std::memcpy(before, known, sizeof known);
    std::memset(known, 0, sizeof known);
    is_first = false;
  }
  for (const std::uint64_t begin : before) {
    if (begin != 0 && begin == object->dlpi_addr) is_new(begin);
  }
  return 0;
}

/// What is rewritten in all objects of a running program.
struct Pass {
  std::span<const Redirection> redirections;
  bool is_last = false;
  std::size_t changed = 0;
  WritableMemory writable = {};
};

int rewrite_running(dl_phdr_info* object, std::size_t, void* data) {
  Pass& pass = *static_cast<Pass*>(data);
  if (is_ours(*object) || is_being_loaded(*object, pass.writable)) return 0;
  pass.changed += rewrite_imports(*object, pass.redirections);
  if (pass.is_last) is_new(object->dlpi_addr);
  if (pass.is_last) additions = object->dlpi_adds;
  return 0;
}

// The hooks of a running program. What gives blocks back comes first: a block whose end is not seen would live forever,
// one whose beginning is not seen is counted.
constexpr const char* takers[] = {
    "free",
    "free_sized",
    "free_aligned_sized",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    "realloc",
    "reallocarray",
};
constexpr const char* others_of_running[] = {
    "malloc",
    "calloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "dlsym",
    "dlvsym",
    "dlclose",
    "prctl",
    "pthread_setname_np",
    "SDL_GL_SwapWindow",
    "SDL_RenderPresent",
    "glXSwapBuffers",
    "eglSwapBuffers",
    "vkQueuePresentKHR",
    "glXGetProcAddress",
    "glXGetProcAddressARB",
    "eglGetProcAddress",
    "SDL_GL_GetProcAddress",
    "vkGetInstanceProcAddr",
    "vkGetDeviceProcAddr",
};
std::size_t taker_count = 0;
bool is_running_hooked = false;
bool own_is_hooked = false;
bool is_constructed = false;
[[gnu::constructor]] void note_construction() { is_constructed = true; }
const void* objects_owner = nullptr;  // of ObjectsLock: the thread's own state

template <std::size_t count>
void redirect_running(const char* const (&names)[count]) {
  for (const char* name : names) redirect(find_anywhere(name).address, find_here(name), name);
}

// Where the program's libblockyard looks for a recorder, and what stood there.
const void** observer_place = nullptr;
const void* observer_before = nullptr;

void show_observer() {
  void* place = find_anywhere(base::observer_place_symbol).address;
  if (place == nullptr) {
    std::uint64_t bias = 0;
    dl_iterate_phdr(take_bias, &bias);
    place = SymbolTable().find(base::observer_place_symbol, bias);
  }
  observer_place = static_cast<const void**>(place);
  const void* const ours = reinterpret_cast<base::FindObserver>(find_here(base::observer_symbol))();
  if (place != nullptr) observer_before = __atomic_exchange_n(observer_place, ours, __ATOMIC_ACQ_REL);
}

int has_additions(dl_phdr_info* object, std::size_t, void*) { return object->dlpi_adds != additions ? 1 : -1; }

void rewrite_additions() {
  if (dl_iterate_phdr(has_additions, nullptr) <= 0) return;
  const std::uint32_t was_busy = self.busy;
  self.busy = 1;
  static bool complete = false;
  if (!complete) {
    complete = true;
    // With RTLD_DEEPBIND an object reaches what is behind the hooks.
#define BLOCKYARD_REDIRECT(name, result, parameters)                                                                \
  redirect(reinterpret_cast<void*>(real.name), reinterpret_cast<void*>(static_cast<result(*) parameters>(&::name)), \
           #name);
    BLOCKYARD_REAL_FUNCTIONS(BLOCKYARD_REDIRECT)
#undef BLOCKYARD_REDIRECT
  }
  WritableMemory writable;
  dl_iterate_phdr(rewrite_new, &writable);
  self.busy = was_busy;
}

}  // namespace

namespace {

/// What is to be changed in the object with an allocator of its own.
struct Plan {
  const void* inside;
  std::span<const Redirection> redirections;
  std::span<const CodeChange> changes;
};

int plan_object(dl_phdr_info* object, std::size_t, void* data) {
  Plan& plan = *static_cast<Plan*>(data);
  if (!contains(*object, plan.inside)) return 0;
  plan.changes = plan_calls(*object, plan.redirections);
  return 1;
}

// Redirects what the allocator in front of the hooks has, by whose calls the hooks were reached so far. Its name, "."
// for the program itself, and an address in it; nullptr where there is none.
const void* redirect_own(char (&name)[64], const FoundSymbol& first, bool is_in_front) {
  const void* inside = nullptr;
  if (is_in_front) {
    if (first.object[0] == '\0') {
      std::strcpy(name, ".");
    } else {
      file_name_of(first.object, name, sizeof name);
    }
    for (Function& function : functions) {
      if (!is_plain(static_cast<int>(&function - functions))) continue;
      const FoundSymbol found = find_anywhere(function.name);
      if (found.address == nullptr || std::strcmp(found.object, first.object) != 0) continue;
      function.real = found.address;
      function.is_exported = true;
      if (&function < functions + new_) redirect(function.real, function.hook, function.name);
    }
    inside = first.address;
    if (name[0] == '.') redirect_linked_in(true);  // its own names for the same functions, and for more
  } else if (redirect_linked_in(false)) {
    name[0] = '.';
    inside = functions[free_].real != nullptr ? functions[free_].real : functions[sdallocx_].real;
  }
  if (inside != nullptr) redirect_operators();
  return inside;
}

}  // namespace

bool hook_own_allocator(char (&name)[64]) {
  dl_iterate_phdr(note, nullptr);  // what is loaded at the start reaches the hooks by the loader's rules
  const FoundSymbol first = find_anywhere("malloc");
  const bool is_in_front = first.address != nullptr && first.address != find_next("malloc").address;
  // It hands calls on to us, as it did before our constructors ran: nothing of it needs a hook.
  if (is_in_front && !is_constructed) return true;
  Wanted wanted{redirect_own(name, first, is_in_front)};
  if (wanted.inside == nullptr) return true;
  dl_iterate_phdr(rewrite, &wanted);
  own_is_hooked = wanted.changed > 0;
  return own_is_hooked;
}

bool own_allocator_is_hooked() { return own_is_hooked; }

std::span<const CodeChange> plan_own_of_running() {
  static Plan plan{nullptr, {}, {}};
  const ObjectsLock held;
  static bool is_planned = false;
  if (is_planned) return plan.changes;
  is_planned = true;
  const FoundSymbol first = find_anywhere("malloc");
  char name[64] = {};
  // The hooks of a recorder that was killed are behind those in front.
  const std::size_t before = redirection_count;
  plan.inside = redirect_own(name, first, first.object != nullptr && first.object[0] == '\0');
  plan.redirections = {redirections + before, redirection_count - before};
  if (plan.inside != nullptr) dl_iterate_phdr(plan_object, &plan);
  redirection_count = before;
  return plan.changes;
}

bool ObjectsLock::take_if_free() {
  const void* owner = nullptr;
  return __atomic_compare_exchange_n(&objects_owner, &owner, &self, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

bool ObjectsLock::take() {
  while (!take_if_free()) {
    if (__atomic_load_n(&objects_owner, __ATOMIC_SEQ_CST) == &self) return false;
    const timespec moment{0, 50'000};
    nanosleep(&moment, nullptr);
  }
  return true;
}

void ObjectsLock::give_back() {
  if (__atomic_load_n(&objects_owner, __ATOMIC_SEQ_CST) == &self)
    __atomic_store_n(&objects_owner, static_cast<const void*>(nullptr), __ATOMIC_SEQ_CST);
}

std::size_t hook_running_program(char (&own)[64]) {
  const ObjectsLock held;
  const FoundSymbol first = find_anywhere("malloc");
  if (first.object != nullptr && first.object[0] == '\0') std::strcpy(own, ".");
  redirection_count = 0;
  redirect_running(takers);
  taker_count = redirection_count;
  redirect_running(others_of_running);
  std::memset(known, 0, sizeof known);
  is_running_hooked = true;
  Pass take{{redirections, taker_count}};
  dl_iterate_phdr(rewrite_running, &take);
  Pass rest{{redirections + taker_count, redirection_count - taker_count}, true};
  dl_iterate_phdr(rewrite_running, &rest);
  show_observer();
  return take.changed + rest.changed;
}

void unhook_running_program() {
  const ObjectsLock held;
  if (!is_running_hooked) return;
  is_running_hooked = false;
  if (observer_place != nullptr) __atomic_store_n(observer_place, observer_before, __ATOMIC_RELEASE);
  for (std::size_t i = 0; i < redirection_count; ++i) {
    std::swap(redirections[i].from, redirections[i].to);
    redirections[i].name = "";
  }
  Pass rest{{redirections + taker_count, redirection_count - taker_count}};
  dl_iterate_phdr(rewrite_running, &rest);
  Pass take{{redirections, taker_count}};
  dl_iterate_phdr(rewrite_running, &take);
}

void hook_new_objects() {
  // Nobody waits here: the caller may hold the loader's lock for which the owner waits. The owner looks once more then.
  static std::uint32_t again = 0;
  __atomic_store_n(&again, 1u, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&again, __ATOMIC_SEQ_CST) != 0) {
    if (!ObjectsLock::take_if_free()) return;
    __atomic_store_n(&again, 0u, __ATOMIC_SEQ_CST);
    rewrite_additions();
    ObjectsLock::give_back();
  }
}

void forget_objects() {
  const ObjectsLock held;
  bool is_first = true;
  dl_iterate_phdr(note_again, &is_first);
}

}  // namespace blockyard::record
