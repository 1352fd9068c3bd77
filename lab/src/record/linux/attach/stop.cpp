#include "record/linux/attach/stop.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include <cpuid.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "journal/event.hpp"

namespace blockyard::record::attach {
namespace {

using journal::Error;

constexpr std::uint64_t red_zone_bytes = 128;
constexpr std::uint64_t call_bytes = 96 << 10;  // dlopen() keeps a path and more on the stack: about 20 KiB

// In the kernel and not in its interface: how a system call that was interrupted is to be begun anew.
constexpr long restart_always = -512;
constexpr long restart_no_interrupt = -513;
constexpr long restart_without_handler = -514;
constexpr long restart_block = -516;

// They give up when they are interrupted, even by what the program can't notice (signal(7)). None has done anything by
// then.
constexpr long give_up[] = {SYS_read,       SYS_accept,      SYS_recvfrom,        SYS_recvmsg,
                            SYS_semop,      SYS_msgsnd,      SYS_msgrcv,          SYS_io_getevents,
                            SYS_semtimedop, SYS_epoll_wait,  SYS_rt_sigtimedwait, SYS_epoll_pwait,
                            SYS_accept4,    SYS_epoll_pwait2};

void pause_us(long us) {
  const timespec time{0, us * 1000};
  nanosleep(&time, nullptr);
}

[[noreturn]] void refuse(pid_t pid, int error) {
  const std::string who = "process " + std::to_string(pid);
  std::ifstream scope("/proc/sys/kernel/yama/ptrace_scope");
  int level = 0;
  if (error == EPERM && scope >> level && level > 0 && geteuid() != 0)
    throw Error(who + " can't be attached to, because /proc/sys/kernel/yama/ptrace_scope is " + std::to_string(level) +
                ": run this as root, or write 0 there; 'blockyard record --asleep -- PROGRAM' needs neither");
  if (error == EPERM)
    throw Error(who +
                " can't be attached to: it is another user's, or the system forbids ptrace here; attach as its user or "
                "as root, in a container with the capability SYS_PTRACE");
  throw Error(who + " can't be attached to: " + std::strerror(error));
}

// A thread that has ended stays where it was the first of the program, and others run on.
bool has_ended(const Target& target, pid_t thread) {
  const std::string state = target.status("State", thread);
  return state.empty() || state.starts_with("Z") || state.starts_with("X");
}

std::vector<pid_t>& late_threads() {
  static std::vector<pid_t> late;
  return late;
}

}  // namespace

std::uint64_t mask_during_call(std::uint64_t own) { return own == all_signals ? own >> 1 & own : all_signals; }

void let_late_threads_go() {
  std::erase_if(late_threads(), [](pid_t thread) {
    int status = 0;
    const pid_t waited = waitpid(thread, &status, __WALL | WNOHANG);
    if (waited == 0) return false;
    if (waited == thread && WIFSTOPPED(status)) {
      const bool is_signal = status >> 16 == 0;
      ptrace(PTRACE_DETACH, thread, nullptr, is_signal ? WSTOPSIG(status) : 0);
    }
    return true;
  });
}

Stop::Stop(const Target& target, pid_t thread) : Stop(target, thread, Begin{}) {
  wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(100));
}

Stop::Stop(const Target& target, pid_t thread, Begin) : target_(target), thread_(thread) {
  let_late_threads_go();
  // One that was late has been asked already.
  if (std::erase(late_threads(), thread) != 0) {
    is_attached_ = true;
    return;
  }
  // One that waits for a child made by vfork() does not stop before that is done.
  if (target.status("State", thread).starts_with("D")) return;
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
    const int error = errno;
    if (error == ESRCH || has_ended(target, thread)) return;
    refuse(target.pid(), error);
  }
  is_attached_ = true;
  ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
}

void Stop::wait(std::chrono::steady_clock::time_point until) {
  while (is_attached_ && !is_stopped_ && std::chrono::steady_clock::now() < until) {
    int status = 0;
    const pid_t waited = waitpid(thread_, &status, __WALL | WNOHANG);
    if (waited == 0) {
      pause_us(20);
    } else if (waited != thread_ || !WIFSTOPPED(status)) {
      is_attached_ = false;
    } else if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP) {
      // The program was stopped, as by Ctrl+Z: it stays so.
      ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
      is_attached_ = false;
    } else if (status >> 16 == PTRACE_EVENT_STOP) {
      is_stopped_ = true;
    } else {
      ptrace(PTRACE_CONT, thread_, nullptr, WSTOPSIG(status));  // a signal on its way
    }
  }
  if (is_stopped_ && ptrace(PTRACE_GETREGS, thread_, nullptr, &registers_) != 0) {
    is_stopped_ = is_attached_ = false;
  }
  if (is_stopped_) resume_interrupted();
}

Stop::~Stop() {
  if (!is_attached_) return;
  if (!is_stopped_) {
    late_threads().push_back(thread_);
    return;
  }
  ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

AllStopped::AllStopped(const Target& target, std::chrono::steady_clock::time_point until) {
  std::set<pid_t> known;
  // A thread that still runs may make others.
  for (bool any = true; any;) {
    any = false;
    const std::size_t first = stops_.size();
    for (const pid_t thread : target.threads()) {
      if (!known.insert(thread).second) continue;
      any = true;
      stops_.push_back(std::make_unique<Stop>(target, thread, Stop::Begin{}));
    }
    for (std::size_t i = first; i < stops_.size(); ++i) {
      stops_[i]->wait(until);
      if (!stops_[i]->is_stopped() && !has_ended(target, stops_[i]->thread())) return;
    }
  }
  is_complete_ = !stops_.empty();
}

// Where a system call gave up just because of us, it is begun anew.
void Stop::resume_interrupted() {
  const auto number = static_cast<long>(registers_.orig_rax);
  if (number < 0 || static_cast<long>(registers_.rax) != -EINTR ||
      std::find(std::begin(give_up), std::end(give_up), number) == std::end(give_up))
    return;
  const auto bits = [&](const char* name) { return target_.signals(name, thread_); };
  if (((bits("SigPnd") | bits("ShdPnd")) & ~bits("SigBlk")) != 0) return;  // it really was interrupted
  registers_.rip -= 2;
  registers_.rax = registers_.orig_rax;
  registers_.orig_rax = ~0ull;
  ptrace(PTRACE_SETREGS, thread_, nullptr, &registers_);
}

// The kernel restarts a critical section (rseq) that a signal interrupts; after a call it could not.
bool Stop::is_idle_in_rseq() const {
#ifdef PTRACE_GET_RSEQ_CONFIGURATION
  struct __ptrace_rseq_configuration configuration {};
  const long bytes = ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread_, sizeof configuration, &configuration);
  if (bytes <= 0 || configuration.rseq_abi_pointer == 0) return true;
  constexpr std::uint64_t section_at = 8;  // rseq(2): cpu_id_start, cpu_id, rseq_cs
  std::uint64_t section = 0;
  return target_.read(configuration.rseq_abi_pointer + section_at, &section, sizeof section) && section == 0;
#else
  return true;
#endif
}

// In the form in which the kernel takes them back from a signal's frame: what XSAVE stores, the words that tell its
// size (asm/sigcontext.h), and a mark behind it.
std::vector<std::byte> Stop::extended_registers() const {
  std::vector<std::byte> area(64 << 10);
  iovec into{area.data(), area.size()};
  if (ptrace(PTRACE_GETREGSET, thread_, NT_X86_XSTATE, &into) != 0) return {};
  constexpr std::size_t legacy_bytes = 512;
  constexpr std::size_t header_bytes = 64;
  constexpr std::size_t software_at = 464;
  if (into.iov_len < legacy_bytes + header_bytes) return {};
  std::uint64_t features = 0;
  std::uint64_t in_use = 0;
  std::memcpy(&features, area.data() + software_at, sizeof features);
  std::memcpy(&in_use, area.data() + legacy_bytes, sizeof in_use);
  // A thread that was not given the tile registers (AMX) has no room for them.
  constexpr std::uint64_t tiles = std::uint64_t{3} << 17;
  if ((in_use & tiles) == 0) features &= ~tiles;
  std::uint32_t bytes = legacy_bytes + header_bytes;
  for (unsigned feature = 2; feature < 63; ++feature) {
    if ((features >> feature & 1) == 0) continue;
    std::uint32_t size = 0;
    std::uint32_t offset = 0;
    std::uint32_t ecx = 0;
    std::uint32_t edx = 0;
    __cpuid_count(0xd, feature, size, offset, ecx, edx);
    bytes = std::max(bytes, offset + size);
  }
  if (bytes > into.iov_len) return {};
  constexpr std::uint32_t first_mark = 0x46505853;
  constexpr std::uint32_t last_mark = 0x46505845;
  const std::uint32_t words[] = {first_mark, bytes + 4, static_cast<std::uint32_t>(features),
                                 static_cast<std::uint32_t>(features >> 32), bytes};
  std::memset(area.data() + software_at, 0, legacy_bytes - software_at);
  std::memcpy(area.data() + software_at, words, sizeof words);
  area.resize(bytes + 4);
  std::memcpy(area.data() + bytes, &last_mark, sizeof last_mark);
  return area;
}

std::string Stop::call(std::uint64_t function, const std::string& text, std::uint64_t second,
                       std::uint64_t return_from_signal) {
  if (!is_idle_in_rseq()) return "it is inside a restartable sequence";
  user_regs_struct back = registers_;
  if (static_cast<long>(back.orig_rax) >= 0) {
    const auto result = static_cast<long>(back.rax);
    if (result == restart_always || result == restart_no_interrupt || result == restart_without_handler ||
        result == restart_block) {
      back.rip -= 2;
      back.rax = back.orig_rax;
      // These say how much of their time is left, and may be called with that.
      if (result == restart_block && back.orig_rax == SYS_nanosleep && back.rsi != 0) back.rdi = back.rsi;
      if (result == restart_block && back.orig_rax == SYS_clock_nanosleep && back.r10 != 0) back.rdx = back.r10;
    }
  }
  const std::vector<std::byte> extended = extended_registers();
  std::uint64_t mask = 0;
  if (extended.empty() || ptrace(PTRACE_GETSIGMASK, thread_, sizeof mask, &mask) != 0)
    return "its registers can't be read";

  // From above: the text, the extended registers, the frame, the address to return to.
  const std::uint64_t text_at = (back.rsp - red_zone_bytes - (text.size() + 1)) & ~std::uint64_t{63};
  const std::uint64_t extended_at = (text_at - extended.size()) & ~std::uint64_t{63};
  const std::uint64_t frame_at = (extended_at - sizeof(ucontext_t)) & ~std::uint64_t{63};
  const std::uint64_t stack = frame_at - sizeof return_from_signal;
  bool has_room = false;
  for (const Mapping& mapping : target_.mappings()) {
    if (stack < mapping.begin || stack >= mapping.end || !mapping.is_writable) continue;
    has_room = mapping.path == "[stack]" || stack - mapping.begin >= call_bytes;
  }
  if (!has_room) return "its stack has no room";

  ucontext_t frame{};
  constexpr unsigned long has_extended = 1;  // UC_FP_XSTATE
  constexpr unsigned long has_ss = 2 | 4;    // UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
  frame.uc_flags = has_extended | has_ss;
  auto& to = frame.uc_mcontext.gregs;
  const auto set = [&to](int index, unsigned long long value) { to[index] = static_cast<greg_t>(value); };
  set(REG_R8, back.r8);
  set(REG_R9, back.r9);
  set(REG_R10, back.r10);
  set(REG_R11, back.r11);
  set(REG_R12, back.r12);
  set(REG_R13, back.r13);
  set(REG_R14, back.r14);
  set(REG_R15, back.r15);
  set(REG_RDI, back.rdi);
  set(REG_RSI, back.rsi);
  set(REG_RBP, back.rbp);
  set(REG_RBX, back.rbx);
  set(REG_RDX, back.rdx);
  set(REG_RAX, back.rax);
  set(REG_RCX, back.rcx);
  set(REG_RSP, back.rsp);
  set(REG_RIP, back.rip);
  set(REG_EFL, back.eflags);
  set(REG_CSGSFS, back.cs | back.ss << 48);
  frame.uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(extended_at);
  std::memcpy(&frame.uc_sigmask, &mask, sizeof mask);
  if (!target_.write(text_at, text.c_str(), text.size() + 1) ||
      !target_.write(extended_at, extended.data(), extended.size()) || !target_.write(frame_at, &frame, sizeof frame) ||
      !target_.write(stack, &return_from_signal, sizeof return_from_signal))
    return "its stack can't be written";

  user_regs_struct there = back;
  there.rip = function;
  there.rdi = text_at;
  there.rsi = second;
  there.rsp = stack;
  there.rax = 0;
  there.orig_rax = ~0ull;
  there.eflags &= ~0x500ull;  // no direction, no trap
  std::uint64_t during = mask_during_call(mask);
  constexpr const char* refused = "its registers can't be written";
  if (ptrace(PTRACE_SETSIGMASK, thread_, sizeof during, &during) != 0) return refused;
  if (ptrace(PTRACE_SETREGS, thread_, nullptr, &there) == 0) return "";
  ptrace(PTRACE_SETSIGMASK, thread_, sizeof mask, &mask);
  return refused;
}

}  // namespace blockyard::record::attach
