/// The allocator's own shared object, loaded so that nothing else in the process uses it.
#ifndef BLOCKYARD_ADAPTERS_SUPPORT_LIBRARY_HPP
#define BLOCKYARD_ADAPTERS_SUPPORT_LIBRARY_HPP

#include <string>

namespace blockyard::adapters {

/// One shared object that exports an allocator. Never closed: allocators do not survive it.
class Library {
 public:
  enum class Binding {
    kOwn,      ///< References inside the library resolve as its author linked them.
    kDeepest,  ///< The library's own definitions win over the process's: for one that calls its `malloc` by that name.
  };

  /// Loads the file that $BLOCKYARD_ALLOCATOR_LIBRARY names, else `fallback` (a soname or path). On failure error()
  /// says why.
  explicit Library(const char* fallback, Binding binding = Binding::kOwn);

  /// Sets `function` to the library's symbol `name`. A symbol that it lacks leaves nullptr and makes ok() false.
  template <typename Function>
  void bind(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(required(name));
  }

  /// The library's symbol `name`, or nullptr when it has none: no error.
  template <typename Function>
  [[nodiscard]] Function* find(const char* name) const {
    return reinterpret_cast<Function*>(optional(name));
  }

  [[nodiscard]] bool ok() const { return error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }

  /// The file that was loaded, links resolved; empty when none was.
  [[nodiscard]] std::string path() const;

  /// The text that follows `marker` in the library's image in memory, up to the first character outside `[0-9A-Za-z.]`,
  /// blanks before it skipped: for libraries that print their version and offer no call for it. Empty when absent.
  [[nodiscard]] std::string text_after(const char* marker) const;

 private:
  [[nodiscard]] void* optional(const char* name) const;
  void* required(const char* name);

  void* handle_ = nullptr;
  std::string error_;
};

/// $BLOCKYARD_ALLOCATOR_VERSION, where only the package knows the version; else `fallback`.
std::string version_of_package(const char* fallback);

}  // namespace blockyard::adapters
#endif
