// What the walker says of a stack is what libunwind says of it, whatever the frames are made of.
#include "unwind/walker.hpp"

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include "call_tree.hpp"
#include "walked.hpp"

namespace {

using namespace blockyard::unwind;

/// Walks twice at each leaf, with the walker and with libunwind.
struct Comparison {
  Walked walked;
  std::size_t probes = 0;
  std::size_t differences = 0;
  std::size_t longest = 0;
  std::string first;

  explicit Comparison(unsigned depth = 4096) : walked(depth) {}

  // libunwind gives return addresses as they are. Where it gives up, ours must have ended too.
  void compare(const Stack& ours, const Stack& theirs) {
    ++probes;
    longest = std::max(longest, ours.addresses.size());
    bool same =
        ours.addresses.size() == theirs.addresses.size() && (ours.end == End::complete || theirs.end != End::complete);
    for (std::size_t i = 0; same && i < ours.addresses.size(); ++i)
      same = ours.addresses[i] == theirs.addresses[i] || ours.addresses[i] + 1 == theirs.addresses[i];
    if (same) return;
    if (differences++ != 0) return;
    first = "ours ends with " + std::to_string(static_cast<int>(ours.end)) + ":\n";
    for (std::size_t i = 0; i < std::max(ours.addresses.size(), theirs.addresses.size()); ++i) {
      const auto at = [i](const Stack& stack) { return i < stack.addresses.size() ? stack.addresses[i] : 0; };
      Dl_info info{};
      dladdr(reinterpret_cast<void*>(at(theirs)), &info);
      char line[200];
      std::snprintf(line, sizeof line, "%zu %lx %lx %s+%lx\n", i, at(ours), at(theirs), info.dli_fname,
                    at(theirs) - reinterpret_cast<std::uint64_t>(info.dli_fbase));
      first += line;
    }
  }
};

[[gnu::noinline]] void probe(void* context) {
  auto& comparison = *static_cast<Comparison*>(context);
  const Stack theirs = libunwind_here();
  comparison.compare(comparison.walked.walk_here(), theirs);
}

void expect_truth(const Comparison& comparison) {
  EXPECT_EQ(comparison.differences, 0u) << comparison.first;
  EXPECT_GT(comparison.probes, 0u);
  EXPECT_FALSE(comparison.walked.is_broken());
}

TEST(Walker, agrees_with_libunwind_on_frames_of_every_shape) {
  Comparison comparison;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    call_tree_without_frame_pointers(static_cast<unsigned>(seed % 13), seed, probe, &comparison);
    call_tree_with_frame_pointers(static_cast<unsigned>(seed % 11), seed, probe, &comparison);
  }
  expect_truth(comparison);
  EXPECT_GT(comparison.probes, 10'000u);
  EXPECT_GT(comparison.longest, 20u);
}

Comparison* compared = nullptr;

int probe_and_compare(const void* left, const void* right) {
  probe(compared);
  return *static_cast<const int*>(left) - *static_cast<const int*>(right);
}

TEST(Walker, agrees_on_frames_of_the_c_library) {
  Comparison comparison;
  compared = &comparison;
  int numbers[] = {5, 3, 9, 1, 7, 2, 8};
  std::qsort(numbers, std::size(numbers), sizeof numbers[0], probe_and_compare);
  expect_truth(comparison);
}

TEST(Walker, agrees_in_other_threads) {
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Comparison>> comparisons;
  for (std::uint64_t seed = 0; seed < 4; ++seed) comparisons.push_back(std::make_unique<Comparison>());
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (std::uint64_t i = 0; i < 20; ++i)
        call_tree_without_frame_pointers(10, seed * 100 + i, probe, comparisons[seed].get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& comparison : comparisons) expect_truth(*comparison);
}

volatile std::sig_atomic_t handled = 0;

void handle(int) {
  probe(compared);
  handled = handled + 1;
}

void raise_in_a_handler(bool on_stack_of_its_own) {
  Comparison comparison;
  compared = &comparison;
  handled = 0;
  std::vector<char> memory(1 << 17);
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  stack_t before{};
  if (on_stack_of_its_own) sigaltstack(&stack, &before);
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = handle;
  action.sa_flags = on_stack_of_its_own ? SA_ONSTACK : 0;
  sigaction(SIGUSR1, &action, &old);
  for (int i = 0; i < 3; ++i) {
    probe(&comparison);
    call_tree_without_frame_pointers(
        4, static_cast<std::uint64_t>(i), [](void*) { std::raise(SIGUSR1); }, nullptr);
  }
  sigaction(SIGUSR1, &old, nullptr);
  if (on_stack_of_its_own) sigaltstack(&before, nullptr);
  expect_truth(comparison);
  EXPECT_GE(handled, 3);
}

TEST(Walker, agrees_in_a_signal_handler) { raise_in_a_handler(false); }
TEST(Walker, agrees_in_a_signal_handler_on_a_stack_of_its_own) { raise_in_a_handler(true); }

/// Where GCC's unwind rules are wrong, so that no walk can be right and libunwind's may read anything: the functions of
/// libgcc that end on their catcher's stack, and the last two instructions, `lea -8(%r10), %rsp; ret`, of functions
/// that realign their stack, where rbp is the caller's already.
bool has_wrong_rules(const ucontext_t& context) {
  const auto pc = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(pc), &info) == 0) return false;
  if (info.dli_sname != nullptr && std::string_view(info.dli_sname).starts_with("_Unwind_")) return true;
  constexpr unsigned char last_but_one[] = {0x49, 0x8d, 0x62, 0xf8};
  const auto* const code = reinterpret_cast<const char*>(pc);
  return std::memcmp(code, last_but_one, 4) == 0 || std::memcmp(code - 4, last_but_one, 4) == 0;
}

void handle_timer(int, siginfo_t*, void* context) {
  if (!has_wrong_rules(*static_cast<ucontext_t*>(context))) handle(SIGVTALRM);
}

TEST(Walker, agrees_wherever_a_timer_interrupts) {
  Comparison comparison;
  compared = &comparison;
  handled = 0;
  struct sigaction action {};
  struct sigaction old {};
  action.sa_sigaction = handle_timer;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGVTALRM, &action, &old);
  const itimerval each{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_VIRTUAL, &each, nullptr);
  for (std::uint64_t seed = 0; handled < 200; ++seed)
    call_tree_without_frame_pointers(
        12, seed, [](void*) {}, nullptr);
  const itimerval none{};
  setitimer(ITIMER_VIRTUAL, &none, nullptr);
  sigaction(SIGVTALRM, &old, nullptr);
  expect_truth(comparison);
}

std::jmp_buf jump;

void leave(void* context) {
  probe(context);
  static unsigned count = 0;
  if (++count % 5 == 0) std::longjmp(jump, 1);
}

TEST(Walker, agrees_after_longjmp_cut_the_stack) {
  Comparison comparison;
  static std::uint64_t seed;  // not in a register, which longjmp may undo
  for (seed = 0; seed < 50; ++seed) {
    if (setjmp(jump) == 0) call_tree_with_frame_pointers(6, seed, leave, &comparison);
    probe(&comparison);
  }
  expect_truth(comparison);
}

ucontext_t main_context;
ucontext_t fiber_contexts[2];
Comparison* fiber_comparison = nullptr;

void fiber(int number) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    call_tree_without_frame_pointers(5, seed + static_cast<std::uint64_t>(number), probe, fiber_comparison);
    swapcontext(&fiber_contexts[number], number == 0 ? &fiber_contexts[1] : &main_context);
  }
}

TEST(Walker, agrees_on_fibers_that_take_turns) {
  Comparison comparison;
  fiber_comparison = &comparison;
  constexpr std::size_t bytes = 1 << 16;
  std::vector<void*> stacks;
  for (int number = 0; number < 2; ++number) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stacks.push_back(memory);
    getcontext(&fiber_contexts[number]);
    fiber_contexts[number].uc_stack.ss_sp = memory;
    fiber_contexts[number].uc_stack.ss_size = bytes;
    fiber_contexts[number].uc_link = &main_context;
    makecontext(&fiber_contexts[number], reinterpret_cast<void (*)()>(fiber), 1, number);
  }
  for (int turn = 0; turn < 20; ++turn) {
    probe(&comparison);
    swapcontext(&main_context, &fiber_contexts[0]);
  }
  for (void* memory : stacks) munmap(memory, bytes);
  probe(&comparison);
  expect_truth(comparison);
}

unsigned recurse(unsigned depth, Walked& walked, std::vector<Stack>& stacks) {
  const unsigned result = depth == 0 ? 0 : recurse(depth - 1, walked, stacks) + 1;
  if (depth % 7 == 0) stacks.push_back(walked.walk_here());
  return result;
}

TEST(Walker, keeps_the_last_frames_of_a_deep_stack_and_says_so) {
  Walked walked(10);
  std::vector<Stack> stacks;
  EXPECT_EQ(recurse(100, walked, stacks), 100u);
  for (const Stack& stack : stacks) {
    EXPECT_LE(stack.addresses.size(), 10u);
    EXPECT_GT(stack.addresses.size(), 7u);
    EXPECT_EQ(stack.end, End::depth);
  }
  EXPECT_LT(walked.nodes(), 200u);
}

/// Walks twice at each leaf: keeping the whole stack, and at most 16 frames of it.
struct CutComparison {
  Walked whole;
  Walked cut{16};
  std::size_t cut_stacks = 0;
};

[[gnu::noinline]] void probe_cut(void* context) {
  auto& both = *static_cast<CutComparison*>(context);
  const Start start = caller_of(__builtin_frame_address(0));
  const Stack whole = both.whole.stack_of(both.whole.walk(start));
  const Stack cut = both.cut.stack_of(both.cut.walk(start));
  if (cut.end == End::depth) {
    ++both.cut_stacks;
    ASSERT_GT(cut.addresses.size(), 12u);
    ASSERT_LT(cut.addresses.size(), whole.addresses.size());
  }
  ASSERT_LE(cut.addresses.size(), 16u);
  for (std::size_t i = 0; i < cut.addresses.size(); ++i) ASSERT_EQ(cut.addresses[i], whole.addresses[i]);
}

// Two ways to go on, chosen by bits, so that few stretches of the stack are alike.
void recurse_two_ways(unsigned depth, std::uint64_t bits, CutComparison& both) {
  probe_cut(&both);
  if (depth == 0) return;
  const std::uint64_t next = bits * 6364136223846793005u + 1442695040888963407u;
  if (next >> 63 != 0) {
    recurse_two_ways(depth - 1, next, both);
    asm volatile("nop");  // so that compilers leave two calls
  } else {
    recurse_two_ways(depth - 1, next, both);
  }
  probe_cut(&both);
}

// If the cut moved with each call, a stack that is one call deeper would share none.
TEST(Walker, cuts_deep_stacks_so_that_they_share_nodes) {
  CutComparison both;
  recurse_two_ways(1000, 1, both);
  EXPECT_GT(both.cut_stacks, 1'900u);
  EXPECT_LT(both.cut.nodes(), 2 * both.whole.nodes());
  EXPECT_FALSE(both.cut.is_broken());
}

TEST(Walker, walks_on_beyond_the_most_frames_that_it_keeps) {
  Walked walked(64);
  std::vector<Stack> stacks;
  EXPECT_EQ(recurse(20'000, walked, stacks), 20'000u);
  EXPECT_EQ(stacks.front().addresses.size(), 64u);
  EXPECT_EQ(stacks.front().end, End::depth);
}

/// The same deep stack, walked while nothing is known of it and again.
struct WalkedTwice {
  Walked walked{100};
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

[[gnu::noinline]] void walk_twice(WalkedTwice& twice) {
  const Start start = caller_of(__builtin_frame_address(0));
  twice.first = twice.walked.walk(start);
  twice.second = twice.walked.walk(start);
}

[[gnu::noinline]] void recurse_to_walk_twice(unsigned depth, WalkedTwice& twice) {
  if (depth == 0) {
    walk_twice(twice);
  } else {
    recurse_to_walk_twice(depth - 1, twice);
  }
  asm volatile("");  // no tail call
}

TEST(Walker, gives_a_stack_of_unknown_depth_one_number) {
  WalkedTwice twice;
  recurse_to_walk_twice(5000, twice);
  EXPECT_EQ(twice.first, twice.second);
  EXPECT_EQ(twice.walked.stack_of(twice.second).addresses.size(), 100u);
}

// A page of code made at run time that calls walk_here(): push rbp; mov rbp, rsp; call rdi; pop rbp; ret.
struct GeneratedCaller {
  GeneratedCaller()
      : page(mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    constexpr unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    if (page == MAP_FAILED) std::abort();
    std::memcpy(page, code, sizeof code);
  }
  GeneratedCaller(const GeneratedCaller&) = delete;
  GeneratedCaller& operator=(const GeneratedCaller&) = delete;
  ~GeneratedCaller() {
    munmap(page, 4096);
    Walker::objects_changed();
  }
  [[nodiscard]] Stack stack_below() const {
    static Walked walked;
    static Stack stack;
    reinterpret_cast<void (*)(void (*)())>(page)([] { stack = walked.walk_here(); });
    return stack;
  }
  [[nodiscard]] std::uint64_t call() const { return reinterpret_cast<std::uint64_t>(page) + 5; }

  void* page;
};

TEST(Walker, ends_with_a_marker_at_code_without_unwind_tables) {
  const GeneratedCaller generated;
  const Stack stack = generated.stack_below();
  EXPECT_EQ(stack.end, End::no_rules);
  ASSERT_EQ(stack.addresses.size(), 1u);
  EXPECT_EQ(stack.addresses[0], generated.call());
}

TEST(Walker, follows_frame_pointers_through_the_code_that_dotnet_compiles) {
  void* const runtime = dlopen(WALKER_STAND_IN_FOR_DOTNET, RTLD_NOW);
  ASSERT_NE(runtime, nullptr) << dlerror();
  const GeneratedCaller generated;
  const Stack stack = generated.stack_below();
  EXPECT_EQ(stack.end, End::complete);
  ASSERT_GT(stack.addresses.size(), 2u);
  EXPECT_EQ(stack.addresses[0], generated.call());
  dlclose(runtime);
}

#if defined(__x86_64__)
// Its rules put the frame at what rbx holds, which is 0: the return address would lie at the very end of the addresses.
asm(".text\n"
    "walker_test_frame_at_0:\n"
    "  .cfi_startproc\n"
    "  push %rbx\n"
    "  xor %ebx, %ebx\n"
    "  .cfi_def_cfa rbx, 0\n"
    "  call *%rdi\n"
    "  pop %rbx\n"
    "  .cfi_def_cfa rsp, 8\n"
    "  ret\n"
    "  .cfi_endproc\n");
extern "C" void walker_test_frame_at_0(void (*call)());

TEST(Walker, ends_with_a_marker_where_a_frame_is_said_to_be_at_0) {
  static Walked walked;
  static Stack stack;
  walker_test_frame_at_0([] { stack = walked.walk_here(); });
  EXPECT_EQ(stack.end, End::unreadable);
  EXPECT_EQ(stack.addresses.size(), 1u);
}
#endif

TEST(Walker, ends_with_a_marker_where_the_return_address_points_at_no_code) {
  Walked walked;
  std::uint64_t stack[8] = {};
  const Start start{reinterpret_cast<std::uint64_t>(&stack), reinterpret_cast<std::uint64_t>(&stack), 0};
  EXPECT_EQ(walked.stack_of(walked.walk(start)).end, End::bad_return);
}

TEST(Walker, numbers_the_same_stack_the_same_and_another_differently) {
  Walked walked;
  std::uint32_t nodes[3] = {};
  const auto here = [&walked](std::uint32_t& node) { node = walked.walk(caller_of(__builtin_frame_address(0))); };
  for (int i = 0; i < 2; ++i) here(nodes[i]);
  here(nodes[2]);
  EXPECT_EQ(nodes[0], nodes[1]);
  EXPECT_NE(nodes[0], no_node);
}

TEST(Walker, forgets_everything_when_objects_were_unloaded) {
  Walked walked;
  Stack stacks[2];
  for (Stack& stack : stacks) {
    stack = walked.walk_here();
    Walker::objects_changed();
  }
  EXPECT_EQ(walked.cleared(), 1u);
  EXPECT_EQ(stacks[0], stacks[1]);
}

}  // namespace
