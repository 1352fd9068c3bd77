/// The common part of adapters over a shared library with a malloc family: it loads the library, binds its functions,
/// and reports its errors from `init`.
#ifndef BLOCKYARD_ADAPTERS_SUPPORT_LIBRARY_ADAPTER_HPP
#define BLOCKYARD_ADAPTERS_SUPPORT_LIBRARY_ADAPTER_HPP

#include <string>

#include "blockyard/adapter.h"
#include "support/library.hpp"
#include "support/setup.hpp"

namespace blockyard::adapters {

/// The library's names for the C functions. nullptr: it has none of that shape, and LibraryDescription::bind sets the
/// adapter's own.
struct FamilyNames {
  const char* malloc;
  const char* calloc;
  const char* realloc;
  const char* memalign;  ///< takes the alignment, then the size
  const char* free;
  const char* usable_size = nullptr;  ///< bytes that may be used in a block
};

struct LibraryDescription {
  const char* name;     ///< the adapter's
  const char* library;  ///< a soname or path, used unless $BLOCKYARD_ALLOCATOR_LIBRARY names another
  FamilyNames names;
  /// Binds whatever else the adapter needs, sets what FamilyNames left out, and returns the allocator's version. Called
  /// once, after the family is bound. A name that it can't bind makes the library's ok() false; then its result is
  /// ignored.
  std::string (*bind)(Library& library, by_adapter& adapter);
  /// Prepares the prefaulted variant: 0 or the result of fail(). May change the adapter's functions.
  int (*populate)(const by_adapter_setup& setup, by_adapter& adapter);
  /// Obeys by_adapter_setup::options, before that: 0 or the result of fail().
  int (*set_options)(const by_adapter_setup& setup) = nullptr;
};

/// The adapter of this shared object, which has one library, because the ABI's functions carry no context. Later calls
/// return the same adapter. When the library can't be loaded or lacks a function, `init` fails with the reason.
const by_adapter* library_adapter(const LibraryDescription& description);

/// The result of the adapter's by_adapter_usable_size: 0 where the library has no such function.
size_t library_usable_size(void* block);

}  // namespace blockyard::adapters
#endif
