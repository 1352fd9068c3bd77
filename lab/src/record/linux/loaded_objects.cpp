#include "record/linux/loaded_objects.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include <elf.h>
#include <link.h>
#include <malloc.h>

#include "base/observer.hpp"
#include "record/linux/program_symbols.hpp"
#include "record/linux/real.hpp"
#include "record/linux/recorder.hpp"
#include "record/linux/symbols.hpp"

namespace blockyard::record {
namespace {

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
    ProgramSymbols().for_each(STT_OBJECT, [&](const char* name, void* address) {
      if (place == nullptr && std::strcmp(name, base::observer_place_symbol) == 0) place = address;
    });
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

Redirection redirections[3 * function_count];
std::size_t redirection_count = 0;

void redirect(void* from, void* to, const char* name) {
  if (from != nullptr && from != to && redirection_count < sizeof redirections / sizeof redirections[0])
    redirections[redirection_count++] = {from, to, name};
}

bool is_ours(const dl_phdr_info& object) { return contains(object, reinterpret_cast<const void*>(&redirect)); }

void note_objects() { dl_iterate_phdr(note, nullptr); }

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
