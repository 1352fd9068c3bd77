/// BY_API: marks the declarations that libblockyard exports. BY_WEAK: marks functions that may be missing when a
/// program is linked and when it runs; MSVC has no such. Included by every public header.
///
/// BY_THREAD_VARIABLE(TYPE, NAME, FUNCTION) declares a variable of each thread that inline functions of several modules
/// read, and FUNCTION(), by which all code refers to it. Where modules can't share such a variable, it is a call.
/// BY_DEFINE_THREAD_VARIABLE stands in one source, in the same namespace, with the initial value.
#ifndef BLOCKYARD_DETAIL_VISIBILITY_H
#define BLOCKYARD_DETAIL_VISIBILITY_H

#if defined(_WIN32)
#define BY_API
#if defined(__GNUC__)
#define BY_WEAK __attribute__((weak))
#endif
#define BY_THREAD_VARIABLE(type, name, function) BY_API type& function() noexcept;
#define BY_DEFINE_THREAD_VARIABLE(type, name, function, ...) \
  type& function() noexcept {                                \
    static constinit thread_local type name{__VA_ARGS__};    \
    return name;                                             \
  }
#else
#define BY_API __attribute__((visibility("default")))
#if defined(__SANITIZE_ADDRESS__)
// GCC takes the flags of the addition that makes the address for its check of null, and the linker replaces that by an
// instruction that sets none.
#define BY_THREAD_ACCESS [[gnu::noinline, gnu::no_sanitize("undefined")]]
#else
#define BY_THREAD_ACCESS
#endif
#define BY_THREAD_VARIABLE(type, name, function)                                                 \
  extern "C" BY_API constinit thread_local type name __attribute__((tls_model("initial-exec"))); \
  BY_THREAD_ACCESS inline type& function() noexcept { return name; }
#define BY_DEFINE_THREAD_VARIABLE(type, name, function, ...) constinit thread_local type name{__VA_ARGS__};
#if __has_attribute(noplt)
// Without noplt, a program that is linked at a fixed address keeps the null that the linker found.
#define BY_WEAK __attribute__((weak, noplt))
#else
#define BY_WEAK __attribute__((weak))
#endif
#endif

#endif
