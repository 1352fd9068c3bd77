// Marks frames without the program's help, in the present functions of SDL, GLX, EGL and Vulkan and in the lookups that
// return their addresses. A frame ends where the outermost of them is entered.
#include "record/frames.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "blockyard/detail/visibility.h"
#include "record/recorder.hpp"
#include "record/symbols.hpp"

namespace blockyard::record {
namespace {

// Every present function takes at most two words and returns at most one, so one type calls them all: in both ABIs that
// we support, the callee ignores words that it does not expect, and the caller ignores an unexpected result.
using Present = std::uintptr_t (*)(std::uintptr_t, std::uintptr_t);
using LookupByName = void* (*)(const char*);
using LookupWithHandle = void* (*)(void*, const char*);

constexpr const char* present_names[] = {"SDL_GL_SwapWindow", "SDL_RenderPresent", "glXSwapBuffers", "eglSwapBuffers",
                                         "vkQueuePresentKHR"};
constexpr const char* lookup_names[] = {"glXGetProcAddress", "glXGetProcAddressARB", "eglGetProcAddress",
                                        "SDL_GL_GetProcAddress"};
constexpr const char* handle_lookup_names[] = {"vkGetInstanceProcAddr", "vkGetDeviceProcAddr"};

template <std::size_t count>
const char* find_name(const char* const (&names)[count], const char* name) {
  for (const char* known : names) {
    if (std::strcmp(known, name) == 0) return known;
  }
  return nullptr;
}

// --frame-symbol is the only mark of a frame, even when it names one of these functions.
bool marks_frames(const char* name) {
  const char* chosen = frame_symbol();
  return chosen == nullptr || std::strcmp(chosen, name) == 0;
}

std::uintptr_t present(const char* name, Present real_function, std::uintptr_t first, std::uintptr_t second) {
  if (self.present_depth++ == 0 && marks_frames(name)) mark_frame(true);
  const std::uintptr_t result = real_function(first, second);
  --self.present_depth;
  return result;
}

// Addresses that lookups found, each with a function of its own in front. Vulkan gives every device a different
// address.
struct Found {
  const char* name;
  void* address;
};
constexpr std::size_t max_found = 32;
Found found_functions[max_found] = {};
std::uint32_t found_lock = 0;

template <std::size_t index>
std::uintptr_t present_found(std::uintptr_t first, std::uintptr_t second) {
  const Found& found = found_functions[index];
  return present(found.name, reinterpret_cast<Present>(found.address), first, second);
}
template <std::size_t index>
void* lookup_found(const char* name) {
  return replace_found(name, reinterpret_cast<LookupByName>(found_functions[index].address)(name));
}
template <std::size_t index>
void* handle_lookup_found(void* handle, const char* name) {
  return replace_found(name, reinterpret_cast<LookupWithHandle>(found_functions[index].address)(handle, name));
}

/// The functions in front of entry `index`, one for each shape.
struct Fronts {
  Present present;
  LookupByName lookup;
  LookupWithHandle handle_lookup;
};
template <std::size_t... index>
constexpr std::array<Fronts, sizeof...(index)> make_fronts(std::index_sequence<index...>) {
  return {{{&present_found<index>, &lookup_found<index>, &handle_lookup_found<index>}...}};
}
constexpr auto fronts = make_fronts(std::make_index_sequence<max_found>{});

// The index of (name, address), assigned now if it is new; max_found when all are assigned.
std::size_t index_of(const char* name, void* address) {
  while (__atomic_exchange_n(&found_lock, 1u, __ATOMIC_ACQUIRE) != 0) {
  }
  std::size_t index = 0;
  while (index < max_found && found_functions[index].address != nullptr &&
         (found_functions[index].address != address || found_functions[index].name != name)) {
    ++index;
  }
  if (index < max_found) found_functions[index] = {name, address};
  __atomic_store_n(&found_lock, 0u, __ATOMIC_RELEASE);
  return index;
}

template <typename Front>
bool is_front(void* address, Front Fronts::*shape) {
  for (const Fronts& front : fronts) {
    if (reinterpret_cast<void*>(front.*shape) == address) return true;
  }
  return false;
}

template <typename Front>
void* put_in_front(const char* name, void* found, Front Fronts::*shape) {
  if (is_front(found, shape)) return found;
  const std::size_t index = index_of(name, found);
  return index < max_found ? reinterpret_cast<void*>(fronts[index].*shape) : found;
}

std::uintptr_t present_exported(const char* name, Present& cached, std::uintptr_t first, std::uintptr_t second) {
  if (cached == nullptr) cached = reinterpret_cast<Present>(find_real(name));
  // Reached only through a weak reference that the program found set, with no library behind it.
  if (cached == nullptr) return 0;
  return present(name, cached, first, second);
}

void* lookup_exported(const char* own_name, LookupByName& cached, const char* name) {
  if (cached == nullptr) cached = reinterpret_cast<LookupByName>(find_real(own_name));
  return cached == nullptr ? nullptr : replace_found(name, cached(name));
}

void* handle_lookup_exported(const char* own_name, LookupWithHandle& cached, void* handle, const char* name) {
  if (cached == nullptr) cached = reinterpret_cast<LookupWithHandle>(find_real(own_name));
  return cached == nullptr ? nullptr : replace_found(name, cached(handle, name));
}

}  // namespace

bool is_replaceable(const char* name) {
  return find_name(present_names, name) != nullptr || find_name(lookup_names, name) != nullptr ||
         find_name(handle_lookup_names, name) != nullptr;
}

void* replace_found(const char* name, void* found) {
  if (name == nullptr || found == nullptr) return found;
  if (const char* known = find_name(present_names, name)) return put_in_front(known, found, &Fronts::present);
  if (const char* known = find_name(lookup_names, name)) return put_in_front(known, found, &Fronts::lookup);
  if (const char* known = find_name(handle_lookup_names, name))
    return put_in_front(known, found, &Fronts::handle_lookup);
  return found;
}

void* find_real(const char* name) {
  void* next = find_next(name).address;
  return next != nullptr ? next : find_anywhere(name).address;
}

}  // namespace blockyard::record

// The same functions for programs that are linked against them. glXGetProcAddress takes unsigned char in its own
// header, which makes no difference under C linkage.
#define BLOCKYARD_PRESENT(name)                                                      \
  BY_API std::uintptr_t name(std::uintptr_t first, std::uintptr_t second);           \
  std::uintptr_t name(std::uintptr_t first, std::uintptr_t second) {                 \
    static blockyard::record::Present real_function = nullptr;                       \
    return blockyard::record::present_exported(#name, real_function, first, second); \
  }
#define BLOCKYARD_LOOKUP(name)                                               \
  BY_API void* name(const char* wanted);                                     \
  void* name(const char* wanted) {                                           \
    static blockyard::record::LookupByName real_function = nullptr;          \
    return blockyard::record::lookup_exported(#name, real_function, wanted); \
  }
#define BLOCKYARD_HANDLE_LOOKUP(name)                                                       \
  BY_API void* name(void* handle, const char* wanted);                                      \
  void* name(void* handle, const char* wanted) {                                            \
    static blockyard::record::LookupWithHandle real_function = nullptr;                     \
    return blockyard::record::handle_lookup_exported(#name, real_function, handle, wanted); \
  }

extern "C" {
BLOCKYARD_PRESENT(SDL_GL_SwapWindow)
BLOCKYARD_PRESENT(SDL_RenderPresent)
BLOCKYARD_PRESENT(glXSwapBuffers)
BLOCKYARD_PRESENT(eglSwapBuffers)
BLOCKYARD_PRESENT(vkQueuePresentKHR)
BLOCKYARD_LOOKUP(glXGetProcAddress)
BLOCKYARD_LOOKUP(glXGetProcAddressARB)
BLOCKYARD_LOOKUP(eglGetProcAddress)
BLOCKYARD_LOOKUP(SDL_GL_GetProcAddress)
BLOCKYARD_HANDLE_LOOKUP(vkGetInstanceProcAddr)
BLOCKYARD_HANDLE_LOOKUP(vkGetDeviceProcAddr)
}
