// Rewrites how loaded objects reach a function: their imports, which lie in tables that the loader filled.
#pragma once

#include <cstddef>
#include <span>

#include <link.h>

namespace blockyard::record {

/// Calls that reach `from` are to reach `to`.
struct Redirection {
  void* from;
  void* to;
  const char* name;  ///< what imports ask for it by
};

/// Makes the imports of one object that hold a `from` hold its `to`: those of its own functions, too, where it keeps
/// their addresses in such a table, and those that the loader has not looked up yet and that have the `name`. Returns
/// how many were changed. Allocates nothing; the object must stay loaded meanwhile.
std::size_t rewrite_imports(const dl_phdr_info& object, std::span<const Redirection> redirections);

/// Makes the calls and jumps within the code of an object that lead straight to a `from` lead to its `to`. Only while
/// no other thread runs that code. Returns how many were changed; none where the system forbids to change code.
std::size_t rewrite_calls(const dl_phdr_info& object, std::span<const Redirection> redirections);

}  // namespace blockyard::record
