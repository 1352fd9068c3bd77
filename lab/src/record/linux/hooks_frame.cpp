// Marks frames without the program's help, in the present functions of SDL, GLX, EGL and Vulkan and in the lookups that
// return their addresses. A frame ends where the outermost of them is entered.
#include "record/linux/frames.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "blockyard/detail/visibility.h"
#include "record/linux/symbols.hpp"
#include "record/linux/text.hpp"

namespace blockyard::record {
namespace {

// Every function here takes at most two words and returns at most one, so one type calls them all: in both ABIs that we
// support, the callee ignores words that it does not expect, and the caller ignores an unexpected result.
using Word = std::uintptr_t;
using Function = Word (*)(Word, Word);

// The name that a lookup wants is its first word or, behind a handle, its second.
enum class Kind : std::uint8_t { present, lookup, handle_lookup };
struct Known {
  const char* name;
  Kind kind;
};

constexpr Known known_functions[] = {
    {"SDL_GL_SwapWindow", Kind::present},
    {"SDL_RenderPresent", Kind::present},
    {"glXSwapBuffers", Kind::present},
    {"eglSwapBuffers", Kind::present},
    {"vkQueuePresentKHR", Kind::present},
    {"glXGetProcAddress", Kind::lookup},
    {"glXGetProcAddressARB", Kind::lookup},
    {"eglGetProcAddress", Kind::lookup},
    {"SDL_GL_GetProcAddress", Kind::lookup},
    {"vkGetInstanceProcAddr", Kind::handle_lookup},
    {"vkGetDeviceProcAddr", Kind::handle_lookup},
};

const Known* find_known(const char* name) {
  for (const Known& known : known_functions) {
    if (same_text(known.name, name)) return &known;
  }
  return nullptr;
}

// --frame-symbol is the only mark of a frame, even when it names one of these functions.
bool marks_frames(const char* name) {
  const char* chosen = frame_symbol();
  return chosen == nullptr || same_text(chosen, name);
}

Word call(const Known& known, Function real_function, Word first, Word second) {
  if (known.kind == Kind::present) {
    std::uint32_t& depth = present_depth();
    if (depth++ == 0 && marks_frames(known.name)) mark_frame(true);
    const Word result = real_function(first, second);
    --depth;
    return result;
  }
  void* const found = reinterpret_cast<void*>(real_function(first, second));
  const Word wanted = known.kind == Kind::lookup ? first : second;
  return reinterpret_cast<Word>(replace_found(reinterpret_cast<const char*>(wanted), found));
}

// Addresses that lookups found, each with a function of its own in front. Vulkan gives every device a different
// address.
struct Found {
  const Known* known;
  void* address;
};
constexpr std::size_t max_found = 32;
Found found_functions[max_found] = {};
std::uint32_t found_lock = 0;

template <std::size_t index>
Word call_found(Word first, Word second) {
  const Found& found = found_functions[index];
  return call(*found.known, reinterpret_cast<Function>(found.address), first, second);
}
template <std::size_t... index>
constexpr std::array<Function, sizeof...(index)> make_fronts(std::index_sequence<index...>) {
  return {&call_found<index>...};
}
constexpr auto fronts = make_fronts(std::make_index_sequence<max_found>{});

// The index of (known, address), assigned now if it is new; max_found when all are assigned.
std::size_t index_of(const Known* known, void* address) {
  while (__atomic_exchange_n(&found_lock, 1u, __ATOMIC_ACQUIRE) != 0) {
  }
  std::size_t index = 0;
  while (index < max_found && found_functions[index].address != nullptr &&
         (found_functions[index].address != address || found_functions[index].known != known)) {
    ++index;
  }
  if (index < max_found) found_functions[index] = {known, address};
  __atomic_store_n(&found_lock, 0u, __ATOMIC_RELEASE);
  return index;
}

Word call_exported(const char* name, Function& cached, Word first, Word second) {
  if (cached == nullptr) cached = reinterpret_cast<Function>(find_real(name));
  // Reached only through a weak reference that the program found set, with no library behind it.
  if (cached == nullptr) return 0;
  return call(*find_known(name), cached, first, second);
}

}  // namespace

bool is_replaceable(const char* name) { return find_known(name) != nullptr; }

void* replace_found(const char* name, void* found) {
  const Known* known = name == nullptr || found == nullptr ? nullptr : find_known(name);
  if (known == nullptr) return found;
  for (const Function front : fronts) {
    if (reinterpret_cast<void*>(front) == found) return found;
  }
  const std::size_t index = index_of(known, found);
  return index < max_found ? reinterpret_cast<void*>(fronts[index]) : found;
}

void* find_real(const char* name) {
  void* next = find_next(name).address;
  return next != nullptr ? next : find_anywhere(name).address;
}

}  // namespace blockyard::record

// The same functions for programs that are linked against them.
#define BLOCKYARD_EXPORT(name)                                                    \
  BY_API std::uintptr_t name(std::uintptr_t first, std::uintptr_t second);        \
  std::uintptr_t name(std::uintptr_t first, std::uintptr_t second) {              \
    static blockyard::record::Function real_function = nullptr;                   \
    return blockyard::record::call_exported(#name, real_function, first, second); \
  }

extern "C" {
BLOCKYARD_EXPORT(SDL_GL_SwapWindow)
BLOCKYARD_EXPORT(SDL_RenderPresent)
BLOCKYARD_EXPORT(glXSwapBuffers)
BLOCKYARD_EXPORT(eglSwapBuffers)
BLOCKYARD_EXPORT(vkQueuePresentKHR)
BLOCKYARD_EXPORT(glXGetProcAddress)
BLOCKYARD_EXPORT(glXGetProcAddressARB)
BLOCKYARD_EXPORT(eglGetProcAddress)
BLOCKYARD_EXPORT(SDL_GL_GetProcAddress)
BLOCKYARD_EXPORT(vkGetInstanceProcAddr)
BLOCKYARD_EXPORT(vkGetDeviceProcAddr)
}
