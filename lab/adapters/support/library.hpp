/// The allocator's own shared object, loaded so that nothing else in the process uses it.
#ifndef BLOCKYARD_ADAPTERS_SUPPORT_LIBRARY_HPP
#define BLOCKYARD_ADAPTERS_SUPPORT_LIBRARY_HPP

#include <string>

namespace blockyard::adapters {

/// One shared object that exports an allocator. Never closed: allocators do not survive that.
class Library {
 public:
  enum class Binding {
    own,  ///< References inside the library resolve as its author linked them.
    /// The library's definitions take precedence over the process's: for a library that calls its own `malloc` by name.
    deepest,
  };

  /// Loads the file that $BLOCKYARD_ALLOCATOR_LIBRARY names, or else `fallback` (a soname or path). On failure error()
  /// says why.
  explicit Library(const char* fallback, Binding binding = Binding::own);

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

  /// The path of the loaded file, links resolved; empty when none was loaded.
  [[nodiscard]] std::string path() const;

  /// The text after `marker` in the library's image in memory, up to the first character outside `[0-9A-Za-z.]`,
  /// without leading blanks: for libraries that print their version and have no call for it. Empty when absent.
  [[nodiscard]] std::string text_after(const char* marker) const;

 private:
  [[nodiscard]] void* optional(const char* name) const;
  void* required(const char* name);

  void* handle_ = nullptr;
  std::string error_;
};

/// $BLOCKYARD_ALLOCATOR_VERSION, for libraries whose version only the package knows; else `fallback`.
std::string version_of_package(const char* fallback);

}  // namespace blockyard::adapters
#endif
