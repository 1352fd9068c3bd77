// Rewrites how loaded objects reach a function: their imports, which lie in tables that the loader filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <link.h>

namespace blockyard::record {

/// Calls that reach `from` are to reach `to`.
struct Redirection {
  void* from;
  void* to;
  const char* name;  ///< what imports ask for it by
};

/// Which memory of this process could be written when it was asked first: to be asked only by what dl_iterate_phdr()
/// calls, since else an object may go, and another be loaded in its place, before its answer is used.
class WritableMemory {
 public:
  WritableMemory() = default;
  ~WritableMemory();
  WritableMemory(const WritableMemory&) = delete;
  WritableMemory& operator=(const WritableMemory&) = delete;
  bool contains(std::uint64_t address);

 private:
  void look();

  char* text_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Whether the loader may still be filling the object's tables: it write-protects them when it is done. It is then to
/// be left alone, since the loader protects memory while others change it. False for objects without such memory.
bool is_being_loaded(const dl_phdr_info& object, WritableMemory& writable);

/// Makes the imports of one object that hold a `from` hold its `to`: those of its own functions, too, where it keeps
/// their addresses in such a table, and those that the loader has not looked up yet and that have the `name`. Returns
/// how many were changed. Allocates nothing; the object must stay loaded meanwhile.
std::size_t rewrite_imports(const dl_phdr_info& object, std::span<const Redirection> redirections);

/// Makes the calls and jumps within the code of an object that lead straight to a `from` lead to its `to`. Only while
/// no other thread runs that code. Returns how many were changed; none where the system forbids to change code.
std::size_t rewrite_calls(const dl_phdr_info& object, std::span<const Redirection> redirections);

/// Four bytes of code, as they are and as they would be for rewrite_calls().
struct CodeChange {
  std::uint64_t at;
  std::int32_t before;
  std::int32_t after;
};

/// What rewrite_calls() would change, for who can stop all threads. Maps the list, and the code that the calls are to
/// lead to, for good. Empty where there is no room.
std::span<const CodeChange> plan_calls(const dl_phdr_info& object, std::span<const Redirection> redirections);

}  // namespace blockyard::record
