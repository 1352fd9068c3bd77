// The library behind --frame-symbol. `blockyard record` copies it, renames the placeholder below to the chosen
// function, and preloads the copy. Calls of that function arrive here, mark a frame, and continue in the real function
// with every argument register unchanged, whatever the function's signature.
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define EXPORTED __attribute__((visibility("default")))
// As long as the longest name it may become.
#define PLACEHOLDER                                                                  \
  "by_frame_symbol_placeholder_____________________________________________________" \
  "________________________________________________________________________________" \
  "_______________________________________________________________________"

// In libblockyard-record, which is preloaded in front of this library.
void* by_frame_symbol_enter(void);
void by_frame_symbol_set_target(void* target);

void by_frame_symbol_trampoline(void) __asm__(PLACEHOLDER);

/// For the dlsym hook: `target` is the real function; the program gets the result instead of it.
EXPORTED void* by_frame_stub_target(void* target);
void* by_frame_stub_target(void* target) {
  by_frame_symbol_set_target(target);
  return (void*)(uintptr_t)by_frame_symbol_trampoline;
}

#if defined(__x86_64__)

// 1 when XSAVE may be used: then the upper halves of vector registers, which carry __m256 and __m512 arguments,
// survive.
__attribute__((visibility("hidden"), used)) uint32_t by_frame_stub_xsave = 0;

__attribute__((constructor)) static void look_at_processor(void) {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_OSXSAVE) != 0) by_frame_stub_xsave = 1;
}

// 0xe7: x87, SSE, AVX and the three parts of AVX-512, at most 2,688 bytes in XSAVE's standard layout; its header of 64
// bytes at 512 must start as zeros. r10 is the static chain and rax counts vector arguments: both are kept.
// clang-format off
__asm__(
    ".text\n"
    ".globl \"" PLACEHOLDER "\"\n"
    ".type \"" PLACEHOLDER "\", @function\n"
    "\"" PLACEHOLDER "\":\n"
    "  .cfi_startproc\n"
    "  endbr64\n"
    "  push %rbp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  .cfi_offset %rbp, -16\n"
    "  mov %rsp, %rbp\n"
    "  .cfi_def_cfa_register %rbp\n"
    "  push %rax\n"
    "  push %rdi\n"
    "  push %rsi\n"
    "  push %rdx\n"
    "  push %rcx\n"
    "  push %r8\n"
    "  push %r9\n"
    "  push %r10\n"
    "  sub $2752, %rsp\n"
    "  and $-64, %rsp\n"
    "  cmpl $0, by_frame_stub_xsave(%rip)\n"
    "  je 1f\n"
    "  xor %eax, %eax\n"
    "  mov %rax, 512(%rsp)\n"
    "  mov %rax, 520(%rsp)\n"
    "  mov %rax, 528(%rsp)\n"
    "  mov %rax, 536(%rsp)\n"
    "  mov %rax, 544(%rsp)\n"
    "  mov %rax, 552(%rsp)\n"
    "  mov %rax, 560(%rsp)\n"
    "  mov %rax, 568(%rsp)\n"
    "  mov $0xe7, %eax\n"
    "  xor %edx, %edx\n"
    "  xsave64 (%rsp)\n"
    "  call by_frame_symbol_enter@PLT\n"
    "  mov %rax, %r11\n"
    "  mov $0xe7, %eax\n"
    "  xor %edx, %edx\n"
    "  xrstor64 (%rsp)\n"
    "  jmp 2f\n"
    "1: fxsave64 (%rsp)\n"
    "  call by_frame_symbol_enter@PLT\n"
    "  mov %rax, %r11\n"
    "  fxrstor64 (%rsp)\n"
    "2: lea -64(%rbp), %rsp\n"
    "  pop %r10\n"
    "  pop %r9\n"
    "  pop %r8\n"
    "  pop %rcx\n"
    "  pop %rdx\n"
    "  pop %rsi\n"
    "  pop %rdi\n"
    "  pop %rax\n"
    "  pop %rbp\n"
    "  .cfi_def_cfa %rsp, 8\n"
    "  jmp *%r11\n"
    "  .cfi_endproc\n"
    ".size \"" PLACEHOLDER "\", .-\"" PLACEHOLDER "\"\n");
// clang-format on

#elif defined(__aarch64__)

// Arguments travel in x0-x8 and the low 128 bits of v0-v7; scalable vector arguments are not kept.
// clang-format off
__asm__(
    ".text\n"
    ".globl \"" PLACEHOLDER "\"\n"
    ".type \"" PLACEHOLDER "\", %function\n"
    "\"" PLACEHOLDER "\":\n"
    "  .cfi_startproc\n"
    "  stp x29, x30, [sp, #-224]!\n"
    "  .cfi_def_cfa_offset 224\n"
    "  .cfi_offset 29, -224\n"
    "  .cfi_offset 30, -216\n"
    "  stp x0, x1, [sp, #16]\n"
    "  stp x2, x3, [sp, #32]\n"
    "  stp x4, x5, [sp, #48]\n"
    "  stp x6, x7, [sp, #64]\n"
    "  str x8, [sp, #80]\n"
    "  stp q0, q1, [sp, #96]\n"
    "  stp q2, q3, [sp, #128]\n"
    "  stp q4, q5, [sp, #160]\n"
    "  stp q6, q7, [sp, #192]\n"
    "  bl by_frame_symbol_enter\n"
    "  mov x16, x0\n"
    "  ldp q0, q1, [sp, #96]\n"
    "  ldp q2, q3, [sp, #128]\n"
    "  ldp q4, q5, [sp, #160]\n"
    "  ldp q6, q7, [sp, #192]\n"
    "  ldr x8, [sp, #80]\n"
    "  ldp x6, x7, [sp, #64]\n"
    "  ldp x4, x5, [sp, #48]\n"
    "  ldp x2, x3, [sp, #32]\n"
    "  ldp x0, x1, [sp, #16]\n"
    "  ldp x29, x30, [sp], #224\n"
    "  .cfi_def_cfa_offset 0\n"
    "  br x16\n"
    "  .cfi_endproc\n"
    ".size \"" PLACEHOLDER "\", .-\"" PLACEHOLDER "\"\n");
// clang-format on

#else
#error "no trampoline for this processor"
#endif
