/// Limits of allocation for tests, with GoogleTest, Catch2 or doctest. This header needs nothing else of Blockyard.
///
///   #include <gtest/gtest.h>                                  // before this one
///   #include <blockyard/linux/expect_allocations.hpp>
///   EXPECT_NO_ALLOCATIONS { world.step(); }
///   EXPECT_ALLOCATIONS_LE(2) { world.load(); }
///   EXPECT_NO_ALLOCATIONS_AGAIN(3) { world.step(); }          // runs it four times; the first may allocate
///
/// What fails says by how much, at the macro's line; the test goes on. Without a framework it ends the program.
///
/// How it counts: the header defines malloc, calloc, realloc, memalign and their kin, weak, for the whole program, and
/// each goes on to the next library's, such as libc's or a preloaded allocator's. A realloc counts as one. `new` counts
/// by the malloc beneath it. With AddressSanitizer, ThreadSanitizer or MemorySanitizer it counts by the hook that they
/// offer, by which ThreadSanitizer tells of no aligned allocation. Include it in the executable: where its malloc is
/// not the one that is called, as in a plugin, or `new` takes no malloc, as with a preloaded allocator or recorder that
/// has operators of its own, the block fails and says so.
///
/// What counts: calls on the thread that runs the block, from its first statement to its last. Other threads' do not,
/// nor what the macro and a failure's message need. What the framework allocates within the block does: put checks
/// behind it, as Catch2's CHECK allocates even where it holds. Calls that the compiler leaves out, and blocks of pools,
/// are none. `break`, `return` and an exception leave the block; only after an exception nothing is checked.
///
/// Cost of each call of malloc in the program: a load, a branch, a count and one call more. Linux with glibc.
#ifndef BLOCKYARD_LINUX_EXPECT_ALLOCATIONS_HPP
#define BLOCKYARD_LINUX_EXPECT_ALLOCATIONS_HPP

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BY_COUNTS_BY_HOOK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define BY_COUNTS_BY_HOOK 1
#endif
#endif

namespace blockyard {

/// What a block on this thread allocated, while one lives. The macros below use it.
class ExpectedAllocations {
 public:
  using Report = void (*)(const char* text);

  /// At most `most` calls in each run of the block, or, with `again`, in each of as many runs after the first.
  ExpectedAllocations(unsigned long long most, unsigned again, Report report) noexcept
      : most_(most), again_(again), report_(report), exceptions_(std::uncaught_exceptions()) {}
  ~ExpectedAllocations() {
    if (runs_ != 0 && std::uncaught_exceptions() == exceptions_) end_run(calls_now());
  }
  ExpectedAllocations(const ExpectedAllocations&) = delete;
  ExpectedAllocations& operator=(const ExpectedAllocations&) = delete;

  /// Ends a run, if there was one, and begins the next; false after the last.
  bool next() {
    const unsigned long long now = calls_now();
    if (runs_ != 0) end_run(now);
    if (const char* why = runs_ == 0 ? obstacle() : nullptr; why != nullptr) report_(why);
    if (said_ || runs_ == again_ + 1) {
      runs_ = 0;
      return false;
    }
    ++runs_;
    begun_ = calls_now();
    return true;
  }

  /// Calls of this thread so far.
  static unsigned long long& calls() noexcept {
    static constinit thread_local unsigned long long count = 0;
    return count;
  }

 private:
  /// Compilers know malloc and assume that it changes no variable: they would take an older count.
  static unsigned long long calls_now() noexcept {
    asm volatile("" ::: "memory");
    return calls();
  }

  /// Why nothing can be counted; nullptr where it can. The pointers keep the compiler from leaving the calls out.
  static const char* obstacle() noexcept {
#ifdef BY_COUNTS_BY_HOOK
    install_hook();
#endif
    void* (*volatile allocate)(std::size_t) = std::malloc;
    void* (*volatile make)(std::size_t, const std::nothrow_t&) noexcept = operator new;
    const unsigned long long before = calls_now();
    std::free(allocate(1));
    const unsigned long long between = calls_now();
    operator delete(make(1, std::nothrow));
    const unsigned long long after = calls_now();
    calls() = before;  // none of a block around this one
    if (between != before + 1) {
      return "allocations can't be counted here: another malloc than this header's is called; include it in a source "
             "of the executable";
    }
    return after == between + 1 ? nullptr : "allocations can't be counted here: operator new takes no malloc";
  }

  void end_run(unsigned long long now) {
    const unsigned long long counted = now - begun_;
    if (runs_ == 1) first_ = counted;
    const bool is_free = again_ != 0 && runs_ == 1;
    if (is_free || counted <= most_ || said_) return;
    said_ = true;
    char text[256];
    const int length = std::snprintf(text, sizeof text, "the block allocated %llu time%s on this thread, and may %llu",
                                     counted, counted == 1 ? "" : "s", most_);
    if (again_ != 0) {
      std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length),
                    "; that was run %u, and %llu in the first", runs_, first_);
    }
    report_(text);
  }

#ifdef BY_COUNTS_BY_HOOK
  static void install_hook() noexcept;
#endif

  unsigned long long most_;
  unsigned again_;
  Report report_;
  int exceptions_;
  unsigned runs_ = 0;  ///< 0 before the first and after the last
  unsigned long long begun_ = 0;
  unsigned long long first_ = 0;
  bool said_ = false;
};

/// What a failure does without a test framework.
[[noreturn]] inline void allocations_exceeded(const char* file, int line, const char* text) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, text);
  std::abort();
}

}  // namespace blockyard

#ifdef BY_COUNTS_BY_HOOK

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, std::size_t),
                                                         void (*freed)(const volatile void*));

inline void blockyard::ExpectedAllocations::install_hook() noexcept {
  [[maybe_unused]] static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t) { ++calls(); }, [](const volatile void*) {});
}

#else

extern "C" void* dlsym(void* handle, const char* name) noexcept;

namespace blockyard::detail {

/// The next library's function. Constant once it was asked for; glibc's dlsym allocates nothing where it finds one.
template <typename Function>
Function* next_library(Function*& known, const char* name) noexcept {
  Function* found = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
  if (found == nullptr) {
    void* const next = reinterpret_cast<void*>(-1L);  // RTLD_NEXT
    found = reinterpret_cast<Function*>(dlsym(next, name));
    if (found == nullptr) std::abort();
    __atomic_store_n(&known, found, __ATOMIC_RELEASE);
  }
  return found;
}

}  // namespace blockyard::detail

// Defines a function of the C library that counts its call and makes it.
#define BY_COUNTED(result, name, parameters, arguments)                                     \
  extern "C" __attribute__((weak, visibility("default"))) result name parameters noexcept { \
    static result(*known) parameters = nullptr;                                             \
    const auto function = ::blockyard::detail::next_library(known, #name);                  \
    ++::blockyard::ExpectedAllocations::calls();                                            \
    return function arguments;                                                              \
  }

BY_COUNTED(void*, malloc, (std::size_t size), (size))
BY_COUNTED(void*, calloc, (std::size_t count, std::size_t size), (count, size))
BY_COUNTED(void*, realloc, (void* block, std::size_t size), (block, size))
BY_COUNTED(void*, reallocarray, (void* block, std::size_t count, std::size_t size), (block, count, size))
BY_COUNTED(int, posix_memalign, (void** block, std::size_t alignment, std::size_t size), (block, alignment, size))
BY_COUNTED(void*, aligned_alloc, (std::size_t alignment, std::size_t size), (alignment, size))
BY_COUNTED(void*, memalign, (std::size_t alignment, std::size_t size), (alignment, size))
BY_COUNTED(void*, valloc, (std::size_t size), (size))
BY_COUNTED(void*, pvalloc, (std::size_t size), (size))
#undef BY_COUNTED

#endif

#if defined(ADD_FAILURE)
#define BY_ALLOCATIONS_EXCEEDED(text) ADD_FAILURE() << text
#elif defined(FAIL_CHECK)
#define BY_ALLOCATIONS_EXCEEDED(text) FAIL_CHECK(text)
#else
#define BY_ALLOCATIONS_EXCEEDED(text) ::blockyard::allocations_exceeded(__FILE__, __LINE__, text)
#endif

#define BY_ALLOCATIONS_LOOP(most, again, name)                                                                      \
  for (::blockyard::ExpectedAllocations name(most, again, [](const char* text) { BY_ALLOCATIONS_EXCEEDED(text); }); \
       name.next();)
#define BY_ALLOCATIONS_NAMED(most, again, number) BY_ALLOCATIONS_LOOP(most, again, by_expected_##number)
// A number of its own for each, so that blocks nest without a name that hides another.
#define BY_EXPECT_ALLOCATIONS(most, again, number) BY_ALLOCATIONS_NAMED(most, again, number)

/// The block that follows must not allocate.
#define EXPECT_NO_ALLOCATIONS BY_EXPECT_ALLOCATIONS(0, 0, __COUNTER__)
/// The block that follows may allocate at most this often.
#define EXPECT_ALLOCATIONS_LE(most) BY_EXPECT_ALLOCATIONS(most, 0, __COUNTER__)
/// The block that follows runs once, and then so often again: from its second run on it must not allocate. So what
/// happens at first use only is told apart from what happens each time.
#define EXPECT_NO_ALLOCATIONS_AGAIN(times) BY_EXPECT_ALLOCATIONS(0, times, __COUNTER__)

#endif
