// Looks up symbols in the loaded objects without dlsym, which is itself hooked and may call malloc.
#pragma once

#include <cstddef>

#include <link.h>

namespace blockyard::record {

/// Where a symbol was found.
struct FoundSymbol {
  void* address = nullptr;       ///< nullptr: nowhere
  const char* object = nullptr;  ///< path of the object that defines it; valid while the object stays loaded
};

/// The file name of a loaded object as the system knows it, behind all symbolic links, for its path as the loader knows
/// it. Cut where it has no room; empty where there is no such file.
void file_name_of(const char* object, char* name, std::size_t room);

/// The first definition of `name` in load order after this library, as RTLD_NEXT would give; where there is none, as
/// when the library came last, the first anywhere. Takes the loader's lock; allocates nothing.
FoundSymbol find_next(const char* name);

/// Whether the address lies in the object.
bool contains(const dl_phdr_info& object, const void* address);

/// This library's own definition; nullptr where it has none.
void* find_here(const char* name);

/// The same as find_next(), with nothing but memory that the loader wrote: it may run before libc's functions work.
/// Objects must not be loaded or unloaded meanwhile.
void* find_next_early(const char* name);

/// Whether the program is built with a sanitizer, which has a malloc, and hooks, of its own.
bool program_is_sanitized();

/// The first definition outside this library and outside objects that define `except` (nullptr: no exception). Also
/// finds it in objects that were loaded locally, which RTLD_NEXT does not see.
FoundSymbol find_anywhere(const char* name, const char* except = nullptr);

}  // namespace blockyard::record
