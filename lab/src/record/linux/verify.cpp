#include "record/linux/verify.hpp"

#include <cstdio>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace blockyard::record {
namespace {

// libunwind's interface for the own process, as its <libunwind-x86_64.h> has it: sizes are upper bounds.
constexpr std::size_t context_bytes = 2048;
constexpr std::size_t cursor_bytes = 2048;
constexpr int instruction_pointer = 16;
struct Libunwind {
  int (*get_context)(void*);
  int (*init_local)(void*, void*);
  int (*step)(void*);
  int (*get_register)(void*, int, unsigned long*);
};
Libunwind libunwind{};

constexpr std::size_t capacity = unwind::Walker::most_frames + 64;
struct Room {
  std::uint64_t theirs[capacity];
  unwind::Address ours[capacity];
};
thread_local Room* room __attribute__((tls_model("initial-exec"))) = nullptr;

constexpr unsigned most_printed = 8;
unsigned printed = 0;

void print_difference(const Room& stacks, std::size_t ours, std::size_t theirs, std::size_t skipped) {
  if (__atomic_fetch_add(&printed, 1u, __ATOMIC_RELAXED) >= most_printed) return;
  char line[160];
  const auto say = [&](int length) {
    if (length > 0) [[maybe_unused]]
      const ssize_t written = write(STDERR_FILENO, line, static_cast<std::size_t>(length));
  };
  say(std::snprintf(line, sizeof line, "blockyard: a stack of %zu frames differs from libunwind's of %zu:\n", ours,
                    theirs - skipped));
  for (std::size_t i = 0; i < ours || i + skipped < theirs; ++i) {
    const std::uint64_t own = i < ours ? stacks.ours[i].instruction_pointer() : 0;
    const std::uint64_t other = i + skipped < theirs ? stacks.theirs[i + skipped] : 0;
    if (own == other) continue;
    Dl_info info{};
    const bool known = dladdr(reinterpret_cast<void*>(own != 0 ? own : other), &info) != 0;
    say(std::snprintf(line, sizeof line, "  %zu: %lx %lx in %.80s\n", i, own, other, known ? info.dli_fname : "?"));
  }
}

}  // namespace

bool load_verifier() {
  if (libunwind.step != nullptr) return true;
#if defined(__x86_64__)
  void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  Libunwind found{};
  found.get_context = reinterpret_cast<int (*)(void*)>(dlsym(library, "_Ux86_64_getcontext"));
  found.init_local = reinterpret_cast<int (*)(void*, void*)>(dlsym(library, "_ULx86_64_init_local"));
  found.get_register = reinterpret_cast<int (*)(void*, int, unsigned long*)>(dlsym(library, "_ULx86_64_get_reg"));
  found.step = reinterpret_cast<int (*)(void*)>(dlsym(library, "_ULx86_64_step"));
  if (!found.get_context || !found.init_local || !found.get_register || !found.step) return false;
  libunwind = found;
  return true;
#else
  return false;
#endif
}

bool verifier_is_loaded() { return libunwind.step != nullptr; }

void verify_stack(const unwind::Start& start, const unwind::Walker& walker, Control& control) {
  if (room == nullptr) {
    void* memory = mmap(nullptr, sizeof(Room), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    room = static_cast<Room*>(memory);
  }
  unwind::End end{};
  const std::size_t ours = walker.last_stack(room->ours, capacity, end);
  alignas(16) unsigned char context[context_bytes];
  alignas(16) unsigned char cursor[cursor_bytes];
  libunwind.get_context(context);
  libunwind.init_local(cursor, context);
  std::size_t theirs = 0;
  std::size_t skipped = 0;  // our own frames
  bool found = false;
  while (theirs < capacity && libunwind.step(cursor) > 0) {
    unsigned long address = 0;
    libunwind.get_register(cursor, instruction_pointer, &address);
    if (address == 0) break;
    if (!found && address == start.return_address) {
      found = true;
      skipped = theirs;
    }
    room->theirs[theirs++] = address;
    if (found && theirs - skipped > ours + 1) break;
  }
  control.stacks_verified.fetch_add(1, std::memory_order_relaxed);
  if (!found) skipped = theirs;
  const std::size_t both = ours < theirs - skipped ? ours : theirs - skipped;
  std::size_t same = 0;
  while (same < both && room->ours[same].instruction_pointer() == room->theirs[same + skipped]) ++same;
  const bool equal = same == both;
  if (equal && ours == theirs - skipped) return;
  if (equal && ours < theirs - skipped && end == unwind::End::depth) return;
  if (equal && ours < theirs - skipped && end != unwind::End::complete) {
    control.stacks_ended_by_us.fetch_add(1, std::memory_order_relaxed);
  } else if (equal && ours > theirs - skipped && theirs > skipped) {
    control.stacks_ended_by_them.fetch_add(1, std::memory_order_relaxed);
  } else {
    control.stacks_differing.fetch_add(1, std::memory_order_relaxed);
    print_difference(*room, ours, theirs, skipped);
  }
}

}  // namespace blockyard::record
