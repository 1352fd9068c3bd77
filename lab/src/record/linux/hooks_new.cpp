// The hooks of operator new and delete, every form.
//
// The standard library's operators are malloc and free with a loop for the new-handler. The hooks therefore call the
// real malloc themselves and leave only failure to the real operator, which then runs handlers and throws through no
// frame of ours. A library's own operators are called unchanged: what they ask malloc for is recorded.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>

#include "blockyard/detail/visibility.h"
#include "record/linux/hooks.hpp"
#include "record/linux/real.hpp"
#include "record/linux/recorder.hpp"
#include "record/linux/symbols.hpp"

namespace blockyard::record {
namespace {

static_assert(sizeof(std::size_t) == sizeof(unsigned long), "the mangled names below say unsigned long");

// Every real operator that a hook may fall back on: member, mangled name, result, parameters.
#define BLOCKYARD_REAL_OPERATORS(X)                                                        \
  X(plain_new, "_Znwm", void*, (std::size_t))                                              \
  X(array_new, "_Znam", void*, (std::size_t))                                              \
  X(plain_new_nothrow, "_ZnwmRKSt9nothrow_t", void*, (std::size_t, const std::nothrow_t&)) \
  X(array_new_nothrow, "_ZnamRKSt9nothrow_t", void*, (std::size_t, const std::nothrow_t&)) \
  X(aligned_new, "_ZnwmSt11align_val_t", void*, (std::size_t, std::align_val_t))           \
  X(aligned_array_new, "_ZnamSt11align_val_t", void*, (std::size_t, std::align_val_t))     \
  X(aligned_new_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t", void*,                      \
    (std::size_t, std::align_val_t, const std::nothrow_t&))                                \
  X(aligned_array_new_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t", void*,                \
    (std::size_t, std::align_val_t, const std::nothrow_t&))                                \
  X(plain_delete, "_ZdlPv", void, (void*))                                                 \
  X(array_delete, "_ZdaPv", void, (void*))                                                 \
  X(aligned_delete, "_ZdlPvSt11align_val_t", void, (void*, std::align_val_t))              \
  X(aligned_array_delete, "_ZdaPvSt11align_val_t", void, (void*, std::align_val_t))

struct RealOperators {
#define BLOCKYARD_MEMBER(name, mangled, result, parameters) result(*name) parameters;
  BLOCKYARD_REAL_OPERATORS(BLOCKYARD_MEMBER)
#undef BLOCKYARD_MEMBER
  bool foreign;  ///< neither the standard library's nor those of malloc's own library
  bool found;
};

RealOperators operators{};

// In a C program that loads a C++ one, the runtime may be loaded locally.
FoundSymbol find_operator(const char* mangled) {
  const FoundSymbol next = find_next(mangled);
  return next.address != nullptr ? next : find_anywhere(mangled);
}

// Found at the first use, when the library that defines them is certainly loaded.
void find_operators() {
  const FoundSymbol standard = find_operator("_Znwm");
  const bool from_runtime = standard.address == nullptr || std::strstr(standard.object, "libstdc++") != nullptr ||
                            std::strstr(standard.object, "libc++") != nullptr;
  const FoundSymbol allocator = find_next("malloc");
  const bool from_allocator =
      !from_runtime && allocator.object != nullptr && std::strcmp(standard.object, allocator.object) == 0;
  operators.foreign = !from_runtime && !from_allocator;
#define BLOCKYARD_FIND(name, mangled, result, parameters) \
  operators.name = reinterpret_cast<result(*) parameters>(find_operator(mangled).address);
  BLOCKYARD_REAL_OPERATORS(BLOCKYARD_FIND)
#undef BLOCKYARD_FIND
  __atomic_store_n(&operators.found, true, __ATOMIC_RELEASE);
}

const RealOperators& real_operators() {
  if (__builtin_expect(!__atomic_load_n(&operators.found, __ATOMIC_ACQUIRE), 0)) find_operators();
  return operators;
}

void* try_plain(std::size_t size, const void* frame) {
  return allocate(RecordKind::allocate, size, 0, frame, [size] { return real.malloc(size == 0 ? 1 : size); });
}

void* try_aligned(std::size_t size, std::align_val_t wanted, const void* frame) {
  std::size_t alignment = static_cast<std::size_t>(wanted);
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  const auto call = [=]() -> void* {
    void* block = nullptr;
    return real.posix_memalign(&block, alignment, size == 0 ? 1 : size) == 0 ? block : nullptr;
  };
  return allocate(RecordKind::allocate_aligned, size, static_cast<std::size_t>(wanted), frame, call);
}

// Tries the real malloc. When that fails, or the operators are foreign, leaves everything to the real operator.
template <auto member, typename Try, typename... Arguments>
void* obtain(Try attempt, std::size_t size, Arguments... arguments) {
  const RealOperators& behind = real_operators();
  if (__builtin_expect(!behind.foreign, 1)) {
    void* block = attempt();
    if (__builtin_expect(block != nullptr, 1)) return block;
  }
  if (behind.*member == nullptr) __builtin_trap();
  return (behind.*member)(size, arguments...);
}

template <auto member, typename... Arguments>
void deallocate(const void* frame, void* block, Arguments... arguments) {
  const RealOperators& behind = real_operators();
  if (__builtin_expect(behind.foreign, 0) && behind.*member != nullptr) {
    (behind.*member)(block, arguments...);
  } else {
    release(block, frame);
  }
}

}  // namespace

void find_real_operators() { real_operators(); }

}  // namespace blockyard::record

namespace record = blockyard::record;
using Size = std::size_t;
using Align = std::align_val_t;
using Nothrow = const std::nothrow_t&;
using Operators = record::RealOperators;

// One line for each form: the operator, its parameters, the real one, and the arguments it gets.
#define BLOCKYARD_NEW(form, parameters, exceptions, member, attempt, ...)                    \
  BY_API void* operator form parameters exceptions {                                         \
    const void* const frame = BLOCKYARD_FRAME;                                               \
    return record::obtain<&Operators::member>([&] { return record::attempt; }, __VA_ARGS__); \
  }
#define BLOCKYARD_DELETE(form, parameters, member, ...)                   \
  BY_API void operator form parameters noexcept {                         \
    record::deallocate<&Operators::member>(BLOCKYARD_FRAME, __VA_ARGS__); \
  }

// clang-format off
BLOCKYARD_NEW(new,   (Size n),                     , plain_new, try_plain(n, frame), n)
BLOCKYARD_NEW(new[], (Size n),                     , array_new, try_plain(n, frame), n)
BLOCKYARD_NEW(new,   (Size n, Align a),            , aligned_new, try_aligned(n, a, frame), n, a)
BLOCKYARD_NEW(new[], (Size n, Align a),            , aligned_array_new, try_aligned(n, a, frame), n, a)
BLOCKYARD_NEW(new,   (Size n, Nothrow t), noexcept, plain_new_nothrow, try_plain(n, frame), n, std::cref(t))
BLOCKYARD_NEW(new[], (Size n, Nothrow t), noexcept, array_new_nothrow, try_plain(n, frame), n, std::cref(t))
BLOCKYARD_NEW(new,   (Size n, Align a, Nothrow t), noexcept, aligned_new_nothrow, try_aligned(n, a, frame), n, a,
              std::cref(t))
BLOCKYARD_NEW(new[], (Size n, Align a, Nothrow t), noexcept, aligned_array_new_nothrow, try_aligned(n, a, frame), n,
              a, std::cref(t))
BLOCKYARD_DELETE(delete,   (void* p),                   plain_delete, p)
BLOCKYARD_DELETE(delete[], (void* p),                   array_delete, p)
BLOCKYARD_DELETE(delete,   (void* p, Size),             plain_delete, p)
BLOCKYARD_DELETE(delete[], (void* p, Size),             array_delete, p)
BLOCKYARD_DELETE(delete,   (void* p, Nothrow),          plain_delete, p)
BLOCKYARD_DELETE(delete[], (void* p, Nothrow),          array_delete, p)
BLOCKYARD_DELETE(delete,   (void* p, Align a),          aligned_delete, p, a)
BLOCKYARD_DELETE(delete[], (void* p, Align a),          aligned_array_delete, p, a)
BLOCKYARD_DELETE(delete,   (void* p, Size, Align a),    aligned_delete, p, a)
BLOCKYARD_DELETE(delete[], (void* p, Size, Align a),    aligned_array_delete, p, a)
BLOCKYARD_DELETE(delete,   (void* p, Align a, Nothrow), aligned_delete, p, a)
BLOCKYARD_DELETE(delete[], (void* p, Align a, Nothrow), aligned_array_delete, p, a)
// clang-format on
