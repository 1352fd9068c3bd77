// Of the C++ library that the process has. A preload that brought one along would cost each C program 1.3 MiB.
#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <iterator>

#include "base/say.hpp"
#include "heap/malloc/cxx_library.hpp"

// By their names as symbols, since not every library's headers declare the second. Null in a C program.
extern "C" {
std::new_handler cxx_new_handler() noexcept __asm__("_ZSt15get_new_handlerv") __attribute__((weak));
[[noreturn]] void cxx_throw_bad_alloc() __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak));
}

namespace blockyard::heap {

namespace {

// In a C program a plug-in may have brought the library, where only the plug-in sees it.
template <class Function>
Function* found(Function* linked, const char* name) {
  if (linked != nullptr) {
    return linked;
  }
  for (const char* const library : {"libstdc++.so.6", "libc++.so.1"}) {
    // Not closed again: what is found is about to run.
    void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (void* const function = loaded != nullptr ? dlsym(loaded, name) : nullptr; function != nullptr) {
      return reinterpret_cast<Function*>(function);
    }
  }
  return nullptr;
}

}  // namespace

std::new_handler new_handler() {
  auto* const get = found(cxx_new_handler, "_ZSt15get_new_handlerv");
  return get != nullptr ? get() : nullptr;
}

void throw_bad_alloc() {
  if (auto* const do_throw = found(cxx_throw_bad_alloc, "_ZSt17__throw_bad_allocv"); do_throw != nullptr) {
    do_throw();
  }
  base::say("blockyard: out of memory in operator new, and no C++ library is there to throw std::bad_alloc\n");
  std::abort();
}

// Looked for in the C++ library itself, once: by these names the linker finds operators.cpp's.
void* new_or_null(NewForm form, std::size_t size, std::align_val_t alignment) noexcept {
  using New = void*(std::size_t, const std::nothrow_t&) noexcept;
  using AlignedNew = void*(std::size_t, std::align_val_t, const std::nothrow_t&) noexcept;
  static constexpr const char* names[] = {"_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t",
                                          "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t"};
  static constinit void* known[std::size(names)]{};
  const auto index = static_cast<std::size_t>(form);
  void* function = __atomic_load_n(&known[index], __ATOMIC_RELAXED);
  if (function == nullptr) {
    function = reinterpret_cast<void*>(found<New>(nullptr, names[index]));
    __atomic_store_n(&known[index], function, __ATOMIC_RELAXED);
  }
  if (function == nullptr) {
    return nullptr;
  }
  return form == NewForm::one || form == NewForm::array
             ? reinterpret_cast<New*>(function)(size, std::nothrow_t())
             : reinterpret_cast<AlignedNew*>(function)(size, alignment, std::nothrow_t());
}

}  // namespace blockyard::heap
