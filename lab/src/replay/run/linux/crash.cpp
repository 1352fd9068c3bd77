#include "replay/run/crash.hpp"

#include <csignal>
#include <cstring>

#include "replay/run/failure.hpp"

namespace blockyard::replay {
namespace {

const Session* observed = nullptr;

struct NamedSignal {
  int number;
  const char* name;
};
constexpr NamedSignal fatal_signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGABRT, "SIGABRT"},
    {SIGILL, "SIGILL"},   {SIGFPE, "SIGFPE"}, {SIGTRAP, "SIGTRAP"},
};

// Async-signal-safe. SA_RESETHAND has restored the default action: returning repeats the fault, or lets abort() go on,
// and the parent sees the signal.
void report(int number, siginfo_t*, void*) {
  const char* name = "a signal";
  for (const NamedSignal& known : fatal_signals) {
    if (known.number == number) name = known.name;
  }
  SafeText reason;
  reason << "the allocator " << observed->allocator << " crashed (" << name << ")";
  const Phase phase = observed->phase.load(std::memory_order_relaxed);
  const ReplayThread* thread = current_thread;
  if (phase == Phase::running && thread != nullptr &&
      thread->progress.done.load(std::memory_order_relaxed) < thread->count) {
    reason << " at event " << thread->record(thread->progress.done.load(std::memory_order_relaxed)).event;
  } else if (thread == nullptr && phase != Phase::starting) {
    reason << " on a thread of its own";
  } else {
    reason << " " << phase_text(phase);
  }
  report_failure(reason);
  raise(
      number);  // stays pending until this handler returns; a fault would come again anyway, abort() would not need it
}

}  // namespace

const char* phase_text(Phase phase) {
  constexpr const char* texts[] = {"while it was started", "while the preamble was restored",
                                   "after a thread's last event", "while the blocks that were left were freed",
                                   "after the run"};
  return texts[static_cast<std::size_t>(phase)];
}

void report_crashes_of(const Session& session) {
  observed = &session;
  struct sigaction action {};
  action.sa_sigaction = report;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const NamedSignal& fatal : fatal_signals) sigaction(fatal.number, &action, nullptr);
}

void use_signal_stack(void* begin, std::size_t bytes) {
  stack_t stack{};
  stack.ss_sp = begin;
  stack.ss_size = bytes;
  sigaltstack(&stack, nullptr);
}

}  // namespace blockyard::replay
