// The hooks of dlsym and dlvsym. The loader uses their caller's return address (RTLD_NEXT, namespaces). For every name
// but the few that frames.hpp replaces, the stub therefore jumps to the real function with the caller's own return
// address in place.
#include <dlfcn.h>

#include "blockyard/detail/visibility.h"
#include "record/linux/frames.hpp"
#include "record/linux/symbols.hpp"
#include "record/linux/text.hpp"

namespace {

using RealDlsym = void* (*)(void*, const char*);
using RealDlvsym = void* (*)(void*, const char*, const char*);

/// The filter's decision; two words, returned in registers.
struct Filtered {
  void* result;
  unsigned long final;  ///< 1: `result` is the answer; 0: let the real function answer its caller
};

}  // namespace

extern "C" {

// Named in the stubs below; hidden, so that they need no relocation by symbol.
__attribute__((visibility("hidden"), used)) RealDlsym by_real_dlsym = nullptr;
__attribute__((visibility("hidden"), used)) RealDlvsym by_real_dlvsym = nullptr;
__attribute__((visibility("hidden"), used)) Filtered by_filter_dlsym(void* handle, const char* name);
__attribute__((visibility("hidden"), used)) Filtered by_filter_dlvsym(void* handle, const char* name,
                                                                      const char* version);
}

namespace {

bool are_in_one_object(const void* left, const void* right) {
  Dl_info of_left{};
  Dl_info of_right{};
  return dladdr(left, &of_left) != 0 && dladdr(right, &of_right) != 0 && of_left.dli_fbase == of_right.dli_fbase;
}

// The stub library of --frame-symbol puts its function in front of whatever the lookup found.
void* replace_frame_symbol(const char* name, void* found) {
  using SetTarget = void* (*)(void*);
  static const auto set_target =
      reinterpret_cast<SetTarget>(blockyard::record::find_anywhere("by_frame_stub_target").address);
  const char* chosen = blockyard::record::frame_symbol();
  if (set_target == nullptr || chosen == nullptr || !blockyard::record::same_text(chosen, name)) return nullptr;
  // A search of everything loaded finds the stub itself, which will look for the function after it.
  if (are_in_one_object(found, reinterpret_cast<const void*>(set_target))) return found;
  return set_target(found);
}

template <typename Lookup>
Filtered filter(void* handle, const char* name, Lookup look_up) {
  using namespace blockyard::record;
  // Its run-time part asks before what follows works, and such a program is not recorded.
  static const bool is_sanitized = program_is_sanitized();
  if (is_sanitized) return {nullptr, 0};
  notice_lookup();
  // A caller that asks for the next definition stands in front of the function itself.
  if (handle == RTLD_NEXT || name == nullptr) return {nullptr, 0};
  const char* chosen = frame_symbol();
  const bool is_chosen = chosen != nullptr && same_text(chosen, name);
  if (!is_chosen && !is_replaceable(name)) return {nullptr, 0};
  void* found = look_up();
  if (found == nullptr) return {nullptr, 1};
  if (is_replaceable(name)) {
    // Our own export does not prove that the program has such a library.
    if (are_in_one_object(found, reinterpret_cast<const void*>(&by_filter_dlsym))) found = find_real(name);
    return {replace_found(name, found), 1};
  }
  void* front = replace_frame_symbol(name, found);
  return {front != nullptr ? front : found, 1};
}

}  // namespace

Filtered by_filter_dlsym(void* handle, const char* name) {
  if (by_real_dlsym == nullptr)
    by_real_dlsym = reinterpret_cast<RealDlsym>(blockyard::record::find_next_early("dlsym"));
  return filter(handle, name, [=] { return by_real_dlsym(handle, name); });
}

Filtered by_filter_dlvsym(void* handle, const char* name, const char* version) {
  if (by_real_dlvsym == nullptr) {
    by_real_dlvsym = reinterpret_cast<RealDlvsym>(blockyard::record::find_next_early("dlvsym"));
  }
  return filter(handle, name, [=] { return by_real_dlvsym(handle, name, version); });
}

#if defined(__x86_64__)
#define BLOCKYARD_STUB(name)               \
  asm(".text\n"                            \
      ".globl " #name                      \
      "\n"                                 \
      ".type " #name ", @function\n" #name \
      ":\n"                                \
      "  .cfi_startproc\n"                 \
      "  endbr64\n"                        \
      "  push %rdi\n"                      \
      "  .cfi_adjust_cfa_offset 8\n"       \
      "  push %rsi\n"                      \
      "  .cfi_adjust_cfa_offset 8\n"       \
      "  push %rdx\n"                      \
      "  .cfi_adjust_cfa_offset 8\n"       \
      "  call by_filter_" #name            \
      "\n"                                 \
      "  mov %rdx, %rcx\n"                 \
      "  pop %rdx\n"                       \
      "  .cfi_adjust_cfa_offset -8\n"      \
      "  pop %rsi\n"                       \
      "  .cfi_adjust_cfa_offset -8\n"      \
      "  pop %rdi\n"                       \
      "  .cfi_adjust_cfa_offset -8\n"      \
      "  test %rcx, %rcx\n"                \
      "  jne 1f\n"                         \
      "  jmp *by_real_" #name              \
      "(%rip)\n"                           \
      "1: ret\n"                           \
      "  .cfi_endproc\n"                   \
      ".size " #name ", .-" #name "\n")
#elif defined(__aarch64__)
#define BLOCKYARD_STUB(name)                  \
  asm(".text\n"                               \
      ".globl " #name                         \
      "\n"                                    \
      ".type " #name ", %function\n" #name    \
      ":\n"                                   \
      "  .cfi_startproc\n"                    \
      "  stp x29, x30, [sp, #-48]!\n"         \
      "  .cfi_def_cfa_offset 48\n"            \
      "  .cfi_offset 30, -40\n"               \
      "  stp x0, x1, [sp, #16]\n"             \
      "  str x2, [sp, #32]\n"                 \
      "  bl by_filter_" #name                 \
      "\n"                                    \
      "  mov x16, x0\n"                       \
      "  mov x17, x1\n"                       \
      "  ldp x0, x1, [sp, #16]\n"             \
      "  ldr x2, [sp, #32]\n"                 \
      "  ldp x29, x30, [sp], #48\n"           \
      "  .cfi_def_cfa_offset 0\n"             \
      "  cbnz x17, 1f\n"                      \
      "  adrp x16, by_real_" #name            \
      "\n"                                    \
      "  ldr x16, [x16, :lo12:by_real_" #name \
      "]\n"                                   \
      "  br x16\n"                            \
      "1: mov x0, x16\n"                      \
      "  ret\n"                               \
      "  .cfi_endproc\n"                      \
      ".size " #name ", .-" #name "\n")
#else
#error "no dlsym stub for this processor"
#endif

BLOCKYARD_STUB(dlsym);
BLOCKYARD_STUB(dlvsym);
