#include "record/linux/attach/safe_point.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "journal/event.hpp"

namespace blockyard::record::attach {
namespace {

using journal::Error;

// Functions of libc, without underscores in front, in which a thread holds none of its locks. A thread that waits is in
// one of them.
const std::set<std::string_view> harmless = {"poll",
                                             "ppoll",
                                             "select",
                                             "pselect",
                                             "epoll_wait",
                                             "epoll_pwait",
                                             "epoll_pwait2",
                                             "read",
                                             "pread",
                                             "pread64",
                                             "readv",
                                             "write",
                                             "pwrite",
                                             "pwrite64",
                                             "writev",
                                             "recv",
                                             "recvfrom",
                                             "recvmsg",
                                             "recvmmsg",
                                             "send",
                                             "sendto",
                                             "sendmsg",
                                             "accept",
                                             "accept4",
                                             "connect",
                                             "nanosleep",
                                             "sleep",
                                             "usleep",
                                             "pause",
                                             "clock_nanosleep",
                                             "sigsuspend",
                                             "sigwait",
                                             "sigwaitinfo",
                                             "sigtimedwait",
                                             "wait",
                                             "waitpid",
                                             "wait3",
                                             "wait4",
                                             "waitid",
                                             "sched_yield",
                                             "syscall",
                                             "ioctl",
                                             "fcntl",
                                             "clock_gettime",
                                             "gettimeofday",
                                             "time",
                                             "getpid",
                                             "gettid",
                                             "pthread_self",
                                             "qsort",
                                             "qsort_r",
                                             "bsearch",
                                             "pthread_once",
                                             "sem_wait",
                                             "sem_timedwait",
                                             "sem_clockwait",
                                             "sem_post",
                                             "pthread_cond_wait",
                                             "pthread_cond_timedwait",
                                             "pthread_cond_clockwait",
                                             "pthread_cond_signal",
                                             "pthread_cond_broadcast",
                                             "pthread_mutex_lock",
                                             "pthread_mutex_trylock",
                                             "pthread_mutex_timedlock",
                                             "pthread_mutex_unlock",
                                             "pthread_rwlock_rdlock",
                                             "pthread_rwlock_wrlock",
                                             "pthread_rwlock_unlock",
                                             "pthread_barrier_wait",
                                             "memcpy",
                                             "memmove",
                                             "memset",
                                             "memcmp",
                                             "memchr",
                                             "strlen",
                                             "strcmp",
                                             "strncmp",
                                             "strcpy",
                                             "strchr",
                                             "strrchr",
                                             "strstr",
                                             "strnlen",
                                             "rand",
                                             "random",
                                             "setjmp",
                                             "sigsetjmp",
                                             "_sigsetjmp",
                                             "longjmp",
                                             "siglongjmp"};
// These can be in the middle of something wherever they stand.
const std::set<std::string_view> harmful = {
    "malloc",        "free",           "calloc", "realloc", "reallocarray",   "memalign",
    "aligned_alloc", "posix_memalign", "valloc", "pvalloc", "malloc_trim",    "malloc_usable_size",
    "exit",          "quick_exit",     "fork",   "vfork",   "dl_iterate_phdr"};
// Where a thread begins.
const std::set<std::string_view> beginnings = {"clone", "clone3", "start_thread", "_start"};

// Of allocators that a program has linked in.
constexpr std::string_view allocator_prefixes[] = {"je_",          "_rjem_",          "mi_",  "_mi_", "tc_",  "rp",
                                                   "operator new", "operator delete", "_Znw", "_Zna", "_Zdl", "_Zda"};

std::string_view plain(std::string_view name) {
  if (const std::size_t version = name.find('@'); version != std::string_view::npos) name = name.substr(0, version);
  if (name == "_start" || name.starts_with("_rjem_") || name.starts_with("_Z")) return name;
  if (name.starts_with("__libc_")) return name.substr(7);
  while (name.starts_with("_")) name.remove_prefix(1);
  return name;
}

std::string root_folder;

int find_elf(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, char** file_name, Elf** elf) {
  *elf = nullptr;
  if (name[0] == '/' && std::strstr(name, " (deleted)") == nullptr) {
    const int file = open((root_folder + name).c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) return file;
  }
  return dwfl_linux_proc_find_elf(module, data, name, base, file_name, elf);
}

int find_no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

constexpr Dwfl_Callbacks callbacks = {find_elf, find_no_debuginfo, nullptr, nullptr};

bool has_name(std::string_view path, std::string_view name) {
  return path == name ||
         (path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '/');
}

enum class Part : std::uint8_t { other, libc, loader, allocator, program };

struct Frame {
  std::uint64_t pc = 0;
  Part part = Part::other;
  std::string name;       ///< of the function; "" where no symbol covers it
  bool is_entry = false;  ///< where the program begins
};

struct Walk {
  std::vector<std::uint64_t> pcs;
};

int take_frame(Dwfl_Frame* frame, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  walk.pcs.push_back(is_activation ? pc : pc - 1);
  constexpr std::size_t most_frames = 4096;
  return walk.pcs.size() < most_frames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

}  // namespace

struct Code::Impl {
  const Target& target;
  Dwfl* dwfl = nullptr;
  Dwfl_Module* libc = nullptr;
  Dwfl_Module* program = nullptr;
  std::set<Dwfl_Module*> loaders;
  std::set<Dwfl_Module*> allocators;
  std::uint64_t entry = 0;
  std::uint64_t signal_return = 0;
  std::pair<std::uint64_t, std::uint64_t> recorder;         ///< our own code in the program
  std::vector<std::pair<std::uint64_t, std::string>> code;  ///< where code was mapped

  explicit Impl(const Target& of) : target(of) {}

  static int visit(Dwfl_Module* module, void**, const char* name, Dwarf_Addr, void* data) {
    auto& self = *static_cast<Impl*>(data);
    const std::string_view path(name);
    if (has_name(path, "libc.so.6")) self.libc = module;
    if (path.find("/ld-linux") != std::string_view::npos || path.find("/ld-2.") != std::string_view::npos)
      self.loaders.insert(module);
    GElf_Addr bias = 0;
    Elf* const elf = dwfl_module_getelf(module, &bias);
    GElf_Ehdr header{};
    if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr) return DWARF_CB_OK;
    if (self.program == nullptr) {  // the maps begin with it, but for what lies at fixed addresses
      self.program = module;
      self.entry = header.e_entry + bias;
    }
    if (path.find("libblockyard-record") == std::string_view::npos && address_of(module, "malloc") != 0)
      self.allocators.insert(module);
    return DWARF_CB_OK;
  }

  static std::uint64_t address_of(Dwfl_Module* module, const char* name) {
    const int count = dwfl_module_getsymtab(module);
    std::uint64_t best = 0;
    for (int i = 0; i < count; ++i) {
      GElf_Sym symbol{};
      GElf_Addr address = 0;
      GElf_Word section = 0;
      const char* const found = dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
      if (found == nullptr || section == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      const std::size_t length = std::strlen(name);
      if (std::strncmp(found, name, length) != 0) continue;
      // Of several versions, the one that programs bind to now has two at signs, or no version.
      if (found[length] == '\0' || std::strncmp(found + length, "@@", 2) == 0) return address;
      if (found[length] == '@' && best == 0) best = address;
    }
    return best;
  }

  Frame frame_at(std::uint64_t pc) const {
    Frame frame;
    frame.pc = pc;
    Dwfl_Module* const module = dwfl_addrmodule(dwfl, pc);
    if (module == nullptr) return frame;
    GElf_Off offset = 0;
    GElf_Sym symbol{};
    const char* const name = dwfl_module_addrinfo(module, pc, &offset, &symbol, nullptr, nullptr, nullptr);
    if (name != nullptr && offset < symbol.st_size) frame.name = plain(name);
    frame.is_entry = module == program && pc >= entry && pc < entry + 64;
    frame.part = module == libc                ? Part::libc
                 : loaders.contains(module)    ? Part::loader
                 : module == program           ? Part::program
                 : allocators.contains(module) ? Part::allocator
                                               : Part::other;
    return frame;
  }

  // The thread waits in pthread_join(), most of which no symbol covers: for a futex that holds the number of a thread
  // until it ends, and that is not private. What frees that thread's stack afterwards takes a lock that dlopen() needs.
  bool waits_for_an_end(const Stop& stop) const {
    const user_regs_struct& registers = stop.registers();
    if (registers.orig_rax != SYS_futex || registers.rsi != (FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME)) return false;
    const std::vector<pid_t> threads = target.threads();
    return std::find(threads.begin(), threads.end(), static_cast<pid_t>(registers.rdx)) != threads.end();
  }

  std::vector<std::pair<std::uint64_t, std::string>> mapped_code() const {
    std::vector<std::pair<std::uint64_t, std::string>> found;
    for (const Mapping& mapping : target.mappings()) {
      if (mapping.is_code && mapping.path.starts_with('/')) found.emplace_back(mapping.begin, mapping.path);
    }
    return found;
  }
};

Code::Code(const Target& target) : impl_(std::make_unique<Impl>(target)) {
  root_folder = target.folder() + "/root";
  Impl& impl = *impl_;
  impl.dwfl = dwfl_begin(&callbacks);
  impl.code = impl.mapped_code();
  if (impl.dwfl == nullptr || dwfl_linux_proc_report(impl.dwfl, target.pid()) != 0 ||
      dwfl_report_end(impl.dwfl, nullptr, nullptr) != 0 || dwfl_linux_proc_attach(impl.dwfl, target.pid(), true) != 0)
    throw Error("the code of process " + std::to_string(target.pid()) + " can't be read: " + dwfl_errmsg(-1));
  dwfl_getmodules(impl.dwfl, Impl::visit, &impl, 0);
  impl.allocators.erase(impl.libc);
  for (Dwfl_Module* loader : impl.loaders) impl.allocators.erase(loader);
  // mov $15, %rax; syscall: no symbol names it.
  constexpr std::array<unsigned char, 9> wanted = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  for (const Mapping& mapping : target.mappings()) {
    if (mapping.is_code && is_file(mapping, "libblockyard-record.so")) impl.recorder = {mapping.begin, mapping.end};
    if (!mapping.is_code || !is_file(mapping, "libc.so.6") || impl.signal_return != 0) continue;
    std::vector<unsigned char> text(mapping.end - mapping.begin);
    if (!target.read(mapping.begin, text.data(), text.size())) continue;
    const auto found = std::search(text.begin(), text.end(), wanted.begin(), wanted.end());
    if (found != text.end()) impl.signal_return = mapping.begin + static_cast<std::uint64_t>(found - text.begin());
  }
}

Code::~Code() {
  if (impl_->dwfl != nullptr) dwfl_end(impl_->dwfl);
}

std::uint64_t Code::in_libc(const char* name) const {
  return impl_->libc == nullptr ? 0 : Impl::address_of(impl_->libc, name);
}

std::uint64_t Code::return_from_signal() const { return impl_->signal_return; }

std::string Code::refusal(const Stop& stop) const {
  const Impl& impl = *impl_;
  if (impl.mapped_code() != impl.code) return "it loads and unloads libraries";
  Walk walk;
  const int end = dwfl_getthread_frames(impl.dwfl, stop.thread(), take_frame, &walk);
  if (walk.pcs.empty()) return "its stack can't be walked";
  std::vector<Frame> frames;
  for (const std::uint64_t pc : walk.pcs) frames.push_back(impl.frame_at(pc));

  const bool has_own_allocator = impl.allocators.contains(impl.program);
  for (const Frame& frame : frames) {
    if (frame.pc + 1 >= impl.signal_return && frame.pc < impl.signal_return + 9) return "it handles a signal";
    if (frame.part == Part::loader) return "it is inside the loader";
    // Detaching takes away what a hook uses.
    if (frame.pc >= impl.recorder.first && frame.pc < impl.recorder.second) return "it is inside a hook";
    if (frame.part == Part::allocator) return "it is inside its allocator";
    if (frame.part == Part::libc && harmful.contains(frame.name)) return "it is inside " + frame.name + "()";
    if (frame.part == Part::program && has_own_allocator &&
        (harmful.contains(frame.name) ||
         std::any_of(std::begin(allocator_prefixes), std::end(allocator_prefixes),
                     [&](std::string_view prefix) { return frame.name.starts_with(prefix); })))
      return "it is inside its allocator";
  }
  const Frame& last = frames.back();
  const bool begins = last.is_entry || beginnings.contains(last.name) || (end == 0 && last.part == Part::libc);
  if (!begins) return "its stack can't be walked to its beginning";

  // What of libc called nothing else, or was called by something else, must be harmless; where a thread begins, is.
  for (std::size_t first = 0; first < frames.size();) {
    if (frames[first].part != Part::libc) {
      ++first;
      continue;
    }
    std::size_t next = first;
    while (next < frames.size() && frames[next].part == Part::libc) ++next;
    const Frame& outermost = frames[next - 1];
    const bool is_beginning = next == frames.size() || frames[next].is_entry;
    if (is_beginning && first == 0) return "it begins or ends";
    const bool joins = (outermost.name.empty() || outermost.name == "pthread_join") && impl.waits_for_an_end(stop);
    const bool is_leaf = first == 0 && next == 1 && outermost.name.empty();
    if (!is_beginning && !is_leaf && !joins && !harmless.contains(outermost.name))
      return "it is inside " + (outermost.name.empty() ? "libc" : outermost.name + "()");
    first = next;
  }
  return "";
}

}  // namespace blockyard::record::attach
