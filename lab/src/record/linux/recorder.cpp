// Attaches a process, registers a thread, waits for room: everything about recording except the path of an event.
#include "record/linux/recorder.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/linux/asleep.hpp"
#include "record/linux/attach.hpp"
#include "record/linux/frames.hpp"
#include "record/linux/loaded_objects.hpp"
#include "record/linux/modules.hpp"
#include "record/linux/own_allocator.hpp"
#include "record/linux/symbols.hpp"
#include "record/linux/verify.hpp"
#include "unwind/rules.hpp"

namespace blockyard::record {
namespace {

ProcessState before_any{};  // used until the page that the kernel wipes is there

// Survives a fork, unlike the process state: the recording that the child comes from, and where its collector listens.
std::uint64_t inherited_key = 0;
char socket_name[108] = {};
char wanted_frame_symbol[256] = {};
char preloaded[2048] = {};
char watched_limits[1 << 16] = {};
char asleep_folder[256] = {};
bool environment_read = false;
bool fork_handlers_set = false;
bool kernel_wipes = false;
int toggle_signal = 0;
struct sigaction before_toggle {};
// Of a program that ran before it was recorded; nullptr for others.
std::size_t (*running_usable_size)(void*) = nullptr;
bool is_running = false;
bool allocator_is_named = false;
char running_own[sizeof Hello{}.own_allocator] = {};
bool running_own_is_hooked = false;

class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

void pause_ns(long ns) {
  const timespec time{0, ns};
  nanosleep(&time, nullptr);
}

// Sleeps on a futex that other processes may share; until it is woken, or half a second has passed.
template <typename Word>
void sleep_on(Word& word, std::uint32_t while_it_is) {
  const timespec most{0, 500'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, while_it_is, &most, nullptr, 0);
}

class StateLock {
 public:
  explicit StateLock(ProcessState& state) : state_(state) {
    if (__atomic_exchange_n(&state_.lock, 1u, __ATOMIC_ACQUIRE) == 0) return;
    while (__atomic_exchange_n(&state_.lock, 2u, __ATOMIC_ACQUIRE) != 0) sleep_on(state_.lock, 2);
  }
  /// For a thread inside the recorder: not held where the recording `key` ends meanwhile. Who ends it has the lock and
  /// waits until such threads have left.
  StateLock(ProcessState& state, std::uint64_t key) : state_(state) {
    for (;;) {
      std::uint32_t free = 0;
      is_held_ = __atomic_compare_exchange_n(&state_.lock, &free, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
      const bool goes_on = __atomic_load_n(&state_.hooks_key, __ATOMIC_ACQUIRE) == key ||
                           __atomic_load_n(&state_.engine_key, __ATOMIC_ACQUIRE) == key;
      if (is_held_ || !goes_on) return;
      pause_ns(20'000);
    }
  }
  ~StateLock() {
    if (is_held_ && __atomic_exchange_n(&state_.lock, 0u, __ATOMIC_RELEASE) == 2)
      syscall(SYS_futex, &state_.lock, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  ProcessState& state_;
  bool is_held_ = true;
};

// Without libc: the hooks of dlsym read the environment, too.
void take_variable(const char* entry, const char* name, char* into, std::size_t capacity) {
  for (; *name != '\0'; ++name, ++entry) {
    if (*entry != *name) return;
  }
  if (*entry++ != '=') return;
  std::size_t bytes = 0;
  while (entry[bytes] != '\0') {
    if (++bytes == capacity) return;
  }
  for (std::size_t at = 0; at <= bytes; ++at) {
    into[at] = entry[at];
    asm volatile("" ::: "memory");  // or the compiler calls memcpy
  }
}

void take_variables(const char* entry) {
  take_variable(entry, socket_variable, socket_name, sizeof socket_name);
  take_variable(entry, frame_symbol_variable, wanted_frame_symbol, sizeof wanted_frame_symbol);
  take_variable(entry, preload_variable, preloaded, sizeof preloaded);
  take_variable(entry, stop_variable, watched_limits, sizeof watched_limits);
  take_variable(entry, asleep_variable, asleep_folder, sizeof asleep_folder);
}

// The first malloc may come before libc has set `environ`; the kernel's copy is always there.
void read_environment_file() {
  static char text[1 << 16];
  const int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::size_t held = 0;
  for (;;) {
    const ssize_t got = read(file, text + held, sizeof text - 1 - held);
    if (got <= 0) break;
    held += static_cast<std::size_t>(got);
    std::size_t at = 0;
    for (std::size_t end = at; end < held; ++end) {
      if (text[end] != '\0') continue;
      take_variables(text + at);
      at = end + 1;
    }
    // An entry longer than the buffer is none of ours: drop what was read of it.
    held = at == 0 && held == sizeof text - 1 ? 0 : held - at;
    std::memmove(text, text + at, held);
  }
  close(file);
}

void read_environment() {
  if (environment_read) return;
  environment_read = true;
  if (environ != nullptr) {
    for (char** entry = environ; *entry != nullptr; ++entry) take_variables(*entry);
  } else {
    read_environment_file();
  }
}

// The page that a forked child finds zeroed.
ProcessState* state_page() {
  if (process != &before_any) return process;
  void* page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return process;
  kernel_wipes = madvise(page, page_bytes, MADV_WIPEONFORK) == 0;
  return static_cast<ProcessState*>(page);
}

void before_fork() {
  ObjectsLock::take();
  if (self.busy != 0) return;
  const Busy busy;  // before the key is looked at, as in every hook: is_busy() relies on it
  if (self.key < first_key || self.key != __atomic_load_n(&process->hooks_key, __ATOMIC_ACQUIRE)) return;
  if (!self.producer.has_room(2) && !wait_for_room(2)) return;
  self.fork_stamp = self.producer.append<When::before>(pack(RecordKind::fork_mark, 0));
}

void after_fork_in_parent() {
  ObjectsLock::give_back();
  self.fork_stamp = 0;
}

void after_fork_in_child() {
  ObjectsLock::give_back();
  // For kernels before 4.14, which do not wipe it: there, a child made by a bare system call looks like its
  // parent.
  if (process != &before_any && !kernel_wipes) *process = ProcessState{};
  // The collector waits for a child that it knows of, even when all others have ended before the child's first event.
  if (socket_name[0] == '\0') return;
  const KeepErrno keep;
  Hello hello;
  hello.pid = getpid();
  hello.parent_key = inherited_key;
  hello.fork_stamp = self.fork_stamp;
  hello.purpose = Purpose::forked;
  tell(socket_name, hello);
}

void set_fork_handlers() {
  if (fork_handlers_set) return;
  fork_handlers_set = true;
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void on_toggle_signal(int) {
  // The handler may interrupt an append, so it only counts; the collector acts on the count.
  const ProcessState* state = process;
  if (state->hooks_key >= first_key) state->mapped.control->toggles.fetch_add(1, std::memory_order_relaxed);
}

void install_toggle(int signal_number) {
  if (signal_number == 0 || toggle_signal != 0) return;
  toggle_signal = signal_number;
  struct sigaction action {};
  action.sa_handler = on_toggle_signal;
  action.sa_flags = SA_RESTART;
  sigaction(signal_number, &action, &before_toggle);
}

// A slot's next thread takes the walker over.
unwind::Walker* walker_of(Slot& slot) {
  if (process->stack_depth == 0) return nullptr;
  auto* walker = static_cast<unwind::Walker*>(slot.walker);
  if (walker != nullptr) {
    walker->start_thread();
  } else {
    slot.walker = walker = unwind::Walker::create(process->stack_depth);
  }
  return walker;
}

// A forked child starts anew: a thread that the child does not have may have been in the middle of a walk.
void forget_walks() {
  unwind::forget_rule_being_added();
  forget_modules();
}

std::uint64_t address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return ~std::uint64_t{0};
  return limit.rlim_cur;
}

// Looked up once: a child has its parent's, and the loader's lock may be taken while it attaches.
void name_allocator(Hello& hello) {
  static char hooked[sizeof hello.allocator] = {};
  static char own[sizeof hello.own_allocator] = {};
  static bool own_is_hooked = false;
  if (!allocator_is_named) {
    allocator_is_named = true;
    own_is_hooked = is_running || hook_own_allocator(own);
    if (is_running) std::memcpy(own, running_own, sizeof own);
    if (own[0] != '\0' && is_running) own_is_hooked = running_own_is_hooked;
    if (const char* path = find_next("malloc").object; path != nullptr) file_name_of(path, hooked, sizeof hooked);
  }
  std::memcpy(hello.allocator, hooked, sizeof hooked);
  std::memcpy(hello.own_allocator, own, sizeof own);
  hello.own_is_hooked = own_is_hooked ? 1 : 0;
}

// Attaches over `connection`. The caller holds the lock of the state that `process` points to.
bool attach_over(int connection, bool engine_only) {
  // Before any allocator's calls are changed: a program that is not recorded, or runs already, stays as it is.
  if (connection < 0) return false;
  Hello hello;
  hello.pid = getpid();
  hello.parent_key = inherited_key;
  hello.fork_stamp = self.fork_stamp;
  hello.address_space_limit = address_space_limit();
  hello.engine_only = engine_only ? 1 : 0;
  hello.is_running = is_running ? 1 : 0;
  if (!engine_only) name_allocator(hello);
  Attachment attachment{};
  if (!shake_hands(connection, hello, attachment)) return false;
  ProcessState* state = state_page();
  state->mapped = Mapped{};
  state->mapped.control = attachment.control;
  state->mapped.empty_page = attachment.empty_page;
  state->pid = getpid();
  state->clock = attachment.welcome.clock;
  state->collector = attachment.welcome.collector;
  state->fences = attachment.welcome.fences;
  state->stack_depth = attachment.welcome.stack_depth;
  state->verify_stacks = attachment.welcome.verify_stacks;
  state->usable_size = running_usable_size;
  state->explicit_frames = 0;
  if (state->stack_depth != 0) forget_walks();
  if (state->fences == 0 && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0)
    state->fences = 1;
  set_fork_handlers();
  install_toggle(attachment.welcome.signal);
  inherited_key = attachment.welcome.key;
  self.fork_stamp = 0;
  __atomic_store_n(&state->engine_key, attachment.welcome.key, __ATOMIC_RELEASE);
  __atomic_store_n(&state->hooks_key, engine_only ? key_off : attachment.welcome.key, __ATOMIC_RELEASE);
  __atomic_store_n(&process, state, __ATOMIC_RELEASE);
  return true;
}

// Decides whether the process is recorded: once per process image, and again in a forked child.
void decide() {
  ProcessState* state = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
  const StateLock lock(*state);
  if (state != __atomic_load_n(&process, __ATOMIC_ACQUIRE)) return;  // another thread attached meanwhile
  if (state->hooks_key != key_undecided) return;
  read_environment();
  const bool may_be_recorded =
      socket_name[0] != '\0' && !program_is_sanitized() && (watched_limits[0] == '\0' || !is_around_the_program());
  const int connection = may_be_recorded ? connect_to_collector(socket_name) : -1;
  if (!attach_over(connection, false)) __atomic_store_n(&process->hooks_key, key_off, __ATOMIC_RELEASE);
}

// A collector that was killed leaves rings that nothing empties.
bool collector_is_gone(std::int32_t pid) {
  if (pid <= 0) return false;
  if (kill(pid, 0) != 0) return errno == ESRCH;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[256] = {};
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return false;
  const char* name_end = std::strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

void end_recording() {
  __atomic_store_n(&process->hooks_key, key_off, __ATOMIC_RELEASE);
  __atomic_store_n(&process->engine_key, key_off, __ATOMIC_RELEASE);
}

/// Watches over a wait that only the collector can end.
class Patience {
 public:
  /// Call it after each of the wait's steps. False when the collector is gone: the recording has ended.
  bool lasts() {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    const std::uint64_t now = monotonic_ns();
    if (now < next_look_) return true;
    next_look_ = now + second_ns / 2;
    const std::uint64_t heartbeat = process->mapped.control->heartbeat.load(std::memory_order_relaxed);
    if (heartbeat != heartbeat_) alive_at_ = now;
    heartbeat_ = heartbeat;
    // A collector in another process namespace has no number here: it counts as gone after a minute without a
    // heartbeat.
    if (now - alive_at_ < 60 * second_ns && !collector_is_gone(process->collector)) return true;
    end_recording();
    return false;
  }

 private:
  std::uint64_t alive_at_ = monotonic_ns();
  std::uint64_t next_look_ = alive_at_ + 500'000'000;
  std::uint64_t heartbeat_ = 0;
};

void forget_reported() {
  for (ThreadState::Range& range : self.reported) range = {0, 0};
}

// A thread starts with what its creator forbade itself.
bool may_read_cycles() {
#if defined(__x86_64__)
  int allowed = PR_TSC_ENABLE;
  return syscall(SYS_prctl, PR_GET_TSC, &allowed, 0, 0, 0) != 0 || allowed == PR_TSC_ENABLE;
#else
  return true;
#endif
}

// Finds the calling thread a free slot. It waits a while for slots of ended threads, but not forever: threads that have
// a slot may be waiting for this one.
bool register_thread(std::uint64_t key) {
  ProcessState& state = *process;
  const bool may_read = may_read_cycles();
  const auto tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  constexpr int most_attempts = 500;
  Slot* slot = nullptr;
  for (int attempt = 0; attempt < most_attempts && slot == nullptr; ++attempt) {
    if (attempt != 0) pause_ns(1'000'000);
    const StateLock lock(state);
    // Under the lock, because what is mapped goes when the recording ends.
    if (state.hooks_key != key && state.engine_key != key) return false;
    Control& control = *state.mapped.control;
    slot = may_read ? state.mapped.take_slot(tid) : nullptr;
    if (slot != nullptr) {
      slot->busy.store(&self.busy);
      self.producer.bind(*slot, control.small_words, state.clock, state.fences != 0);
      break;
    }
    const bool may_come = may_read && control.slots_used.load() == control.slot_count && attempt + 1 < most_attempts;
    if (may_come) continue;
    (may_read ? control.threads_refused : control.threads_left).fetch_add(1);
    self.refused = key;
    return false;
  }
  self.walker = walker_of(*slot);
  forget_reported();
  self.key = key;
  number_all_tags();
  return true;
}

// The small ring is full: threads that have much to say get a large one, as long as there are some.
bool grow_ring() {
  Producer& producer = self.producer;
  if (producer.slot->large.load(std::memory_order_relaxed) != 0) return false;
  ProcessState& state = *process;
  const Control& control = *state.mapped.control;
  if (control.large_used.load(std::memory_order_relaxed) == control.large_count &&
      control.large_free.load(std::memory_order_relaxed) == 0)
    return false;
  std::uint32_t number = 0;
  const StateLock lock(state, self.key);
  if (!lock.is_held()) return false;
  std::uint64_t* ring = state.mapped.take_large(number);
  if (ring != nullptr) producer.grow(ring, control.large_words, number);
  return ring != nullptr;
}

/// Reports what of a stack is new. The records precede the event that they belong to.
class NodeSink final : public unwind::Sink {
 public:
  void add_node(std::uint32_t node, std::uint32_t parent, std::uint64_t frame) override {
    const bool is_root = (frame & unwind::end_marker) != 0;
    if (!is_root) announce_module(unwind::Address{frame}.value());
    const std::uint64_t payload = is_root ? root_flag | (frame & 0xff) : frame;
    append<When::before>(pack(RecordKind::stack_node, payload), pack_pair(node, parent));
  }
  void clear_nodes() override {
    forget_reported();
    append<When::before>(pack(RecordKind::stack_clear, 0));
  }
};

NodeSink node_sink;

bool register_if_recording(const std::uint64_t& process_key) {
  const std::uint64_t key = __atomic_load_n(&process_key, __ATOMIC_ACQUIRE);
  if (key < first_key || self.refused == key) return false;
  return self.key == key || register_thread(key);
}

// A program that never allocates is recorded too: its empty journal says just that.
__attribute__((constructor)) void attach_at_load() {
  prepare_for_hooks();
  if (watched_limits[0] != '\0') watch_limits(watched_limits);
  // Where the library is loaded to be attached later: no fork may be under way then that does not know of ObjectsLock.
  if (socket_name[0] == '\0' && !program_is_sanitized()) set_fork_handlers();
  if (socket_name[0] == '\0' && asleep_folder[0] != '\0' && !program_is_sanitized()) {
    const Busy busy;
    Hello unused;
    name_allocator(unused);
    fall_asleep(asleep_folder);
  }
  if (process->verify_stacks == 0) return;
  const std::uint32_t was_busy = self.busy;
  self.busy = 1;
  if (!load_verifier()) {
    static constexpr char sentence[] = "blockyard: libunwind.so.8 can't be loaded, so no stack is verified\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, sentence, sizeof sentence - 1);
  }
  self.busy = was_busy;
}

}  // namespace

ProcessState* process = &before_any;
constinit thread_local ThreadState self
    __attribute__((tls_model("initial-exec"))) = {1, {}, 0, 0, 0, 0, nullptr, {}, 0, {}};

bool prepare_for_hooks() {
  const std::uint64_t key = __atomic_load_n(&process->hooks_key, __ATOMIC_ACQUIRE);
  if (key == key_off) return false;
  const KeepErrno keep;
  const std::uint32_t was_busy = self.busy;
  self.busy = 1;
  if (key == key_undecided) decide();
  const bool ready = register_if_recording(process->hooks_key);
  self.busy = was_busy;
  return ready;
}

bool prepare_for_engine() {
  const KeepErrno keep;
  const std::uint32_t was_busy = self.busy;
  self.busy = 1;
  const bool ready = register_if_recording(process->engine_key);
  self.busy = was_busy;
  return ready;
}

bool wait_for_room(std::uint64_t words) {
  const KeepErrno keep;
  if (grow_ring()) return true;
  Producer& producer = self.producer;
  Slot& slot = *producer.slot;
  const std::uint64_t begin = stamp_before(producer.clock);
  slot.waits.fetch_add(1, std::memory_order_relaxed);
  Patience patience;
  bool stopped = false;
  for (;;) {
    slot.waiting.store(1);
    stopped = slot.stop.load() != 0;
    if (stopped || producer.has_room(words)) break;
    sleep_on(slot.waiting, 1);
    stopped = !patience.lasts();
    if (stopped) break;
  }
  slot.waiting.store(0, std::memory_order_relaxed);
  slot.waited.fetch_add(stamp_after(producer.clock) - begin, std::memory_order_relaxed);
  return !stopped;
}

namespace {

#if defined(__x86_64__)
// Calls `function(argument)` on the stack that ends at `top`.
asm(".text\n"
    ".type by_call_on_stack, @function\n"
    "by_call_on_stack:\n"
    "  .cfi_startproc\n"
    "  endbr64\n"
    "  push %rbp\n"
    "  .cfi_def_cfa_offset 16\n"
    "  .cfi_offset 6, -16\n"
    "  mov %rsp, %rbp\n"
    "  .cfi_def_cfa_register 6\n"
    "  mov %rdx, %rsp\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  call *%rax\n"
    "  mov %rbp, %rsp\n"
    "  pop %rbp\n"
    "  .cfi_def_cfa 7, 8\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size by_call_on_stack, .-by_call_on_stack\n");
extern "C" __attribute__((visibility("hidden"))) void by_call_on_stack(void (*function)(void*), void* argument,
                                                                       void* top);
#else
inline void by_call_on_stack(void (*function)(void*), void* argument, void*) { function(argument); }
#endif

struct Walk {
  unwind::Start start;
  std::uint32_t node;
};

void walk_now(void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  walk.node = self.walker->walk(walk.start, node_sink);
}

constexpr std::size_t guard_bytes = std::size_t{64} << 10;  // the largest page that a processor has
constexpr std::size_t spare_stack_bytes = guard_bytes + (std::size_t{32} << 10);

void unmap_spare_stack(void* end) { munmap(static_cast<std::byte*>(end) - spare_stack_bytes, spare_stack_bytes); }

// A fiber's stack may have a kilobyte left, a signal handler's four. A walk takes up to three.
void walk_elsewhere(Walk& walk) {
  void*& spare = self.producer.slot->spare_stack;
  if (spare == nullptr) {
    constexpr std::size_t bytes = spare_stack_bytes;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    mprotect(memory, guard_bytes, PROT_NONE);
    spare = static_cast<std::byte*>(memory) + bytes;
  }
  by_call_on_stack(walk_now, &walk, spare);
}

}  // namespace

std::uint32_t walk_stack(const void* frame) {
  const unwind::Start start = unwind::caller_of(frame);
  std::uint32_t node = 0;
  if (__builtin_expect(self.walker->is_on_own_stack(start.rsp), 1)) {
    node = self.walker->walk(start, node_sink);
  } else {
    const KeepErrno keep;
    Walk walk{start, 0};
    walk_elsewhere(walk);
    node = walk.node;
  }
  if (__builtin_expect(process->verify_stacks != 0, 0) && verifier_is_loaded()) {
    const KeepErrno keep;
    verify_stack(start, *self.walker, *process->mapped.control);
  }
  return node;
}

void notice_unloaded() {
  const KeepErrno keep;
  const std::uint32_t was_busy = self.busy;
  self.busy = 1;
  if (process->stack_depth != 0 && (hooks_ready() || engine_ready())) withdraw_modules();
  self.busy = was_busy;
}

std::uint64_t leave_recording() {
  const Busy busy;
  const std::uint64_t key = __atomic_load_n(&process->hooks_key, __ATOMIC_ACQUIRE);
  if (key < first_key || self.refused == key) return 0;
  if (process->pid != getpid()) return 0;  // a vfork child, which has its parent's memory
  process->mapped.control->threads_left.fetch_add(1);
  self.refused = key;
  const std::uint64_t left = self.key;
  self.key = 1;
  return left;
}

void return_to_recording(std::uint64_t left) {
  if (left == 0) return;
  const Busy busy;
  process->mapped.control->threads_left.fetch_sub(1);
  self.refused = 0;
  self.key = left;
}

void mark_frame(bool automatic) {
  if (self.busy != 0) return;
  const Busy busy;
  if (!engine_ready()) {
    // A program may draw before it allocates.
    if (!hooks_ready()) return;
  }
  if (automatic && process->explicit_frames != 0) return;
  if (!automatic) process->explicit_frames = 1;
  append<When::before>(pack(RecordKind::frame_mark, 0));
  if (limits_are_watched) watch_frame();
}

std::uint32_t& present_depth() { return self.present_depth; }

void notice_lookup() {
  if (__atomic_load_n(&process->hooks_key, __ATOMIC_ACQUIRE) >= first_key) hook_new_objects();
}

void record_text(RecordKind kind, const char* text, bool engine) {
  if (self.busy != 0 || text == nullptr) return;
  const Busy busy;
  if (!engine_ready() && !hooks_ready()) return;
  const std::size_t bytes = strnlen(text, max_text_bytes);
  append<When::before>(pack(kind, bytes, engine), 0, 0, text);
  if (limits_are_watched && kind == RecordKind::phase_mark) watch_phase(text);
}

bool open_engine_recording() {
  const KeepErrno keep;
  const Busy busy;
  ProcessState* state = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
  const StateLock lock(*state);
  if (__atomic_load_n(&process->engine_key, __ATOMIC_ACQUIRE) >= first_key) return true;
  return attach_over(start_collector(own_folder()), true);
}

bool wait_for_engine_close(std::uint32_t closed_before) {
  const KeepErrno keep;
  const Control& control = *process->mapped.control;
  Patience patience;
  while (control.engine_closed.load() == closed_before) {
    pause_ns(100'000);
    if (!patience.lasts()) return false;
  }
  return control.engine_failed.load() == 0;
}

namespace {

// Whether a thread is inside the recorder. One that began after the caller's barrier knows that the recording is over.
bool is_busy(const Slot& slot) {
  const std::uint32_t* const place = slot.busy.load();
  const auto tid = static_cast<pid_t>(slot.owner.load());
  if (tid == 0 || place == nullptr || syscall(SYS_tgkill, getpid(), tid, 0) != 0) return false;
  std::uint32_t busy = 0;
  const iovec into{&busy, sizeof busy};
  const iovec from{const_cast<std::uint32_t*>(place), sizeof busy};
  // A thread may end, and its memory go, meanwhile.
  const bool was_read = process_vm_readv(getpid(), &into, 1, &from, 1, 0) == static_cast<ssize_t>(sizeof busy);
  return was_read ? busy != 0 : errno != EFAULT;
}

bool all_have_left(const Mapped& mapped) {
  constexpr int most_looks = 1000;
  for (int look = 0; look < most_looks; ++look) {
    bool some_are_in = false;
    for (const Slot* slot = mapped.first_slot; slot != nullptr && !some_are_in; slot = slot->next) {
      some_are_in = slot->busy.load() != &self.busy && is_busy(*slot);
    }
    if (!some_are_in) return true;
    pause_ns(1'000'000);
  }
  return false;
}

}  // namespace

namespace {

const char* attach_to(const char* socket, bool has_hooks, bool is_changed) {
  const KeepErrno keep;
  const Busy busy;
  if (program_is_sanitized()) return "it is built with a sanitizer, whose own malloc stands in front of the recorder";
  ProcessState* state = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
  const StateLock lock(*state);
  if (state->hooks_key >= first_key || state->engine_key >= first_key) return "it is being recorded already";
  const int connection = connect_to_collector(socket);
  if (connection < 0) return "it can't reach the collector's socket";
  const timeval patience{10, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  environment_read = true;
  std::strncpy(socket_name, socket, sizeof socket_name - 1);
  is_running = true;
  allocator_is_named = has_hooks;
  const ObjectsLock objects;
  // A forked child must not look for them.
  find_real_functions();
  find_real_operators();
  find_thread_functions();
  const FoundSymbol usable_size = find_next("malloc_usable_size");
  const char* const allocator = find_next("malloc").object;
  const bool is_its = allocator != nullptr && usable_size.object != nullptr && !own_allocator_is_hooked() &&
                      std::strcmp(allocator, usable_size.object) == 0;
  running_usable_size = is_its ? reinterpret_cast<std::size_t (*)(void*)>(usable_size.address) : nullptr;
  if (!has_hooks) {
    std::memset(running_own, 0, sizeof running_own);
    hook_running_program(running_own);
    if (is_changed) std::strcpy(running_own, ".");
    running_own_is_hooked = is_changed;
  }
  if (attach_over(connection, false)) return nullptr;
  unhook_running_program();
  socket_name[0] = '\0';
  return "the collector refused it";
}

}  // namespace

std::span<const CodeChange> plan_for_running() {
  const KeepErrno keep;
  const Busy busy;
  ProcessState* state = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
  const StateLock lock(*state);
  if (state->hooks_key == key_undecided) __atomic_store_n(&state->hooks_key, key_off, __ATOMIC_RELEASE);
  // What was preloaded has hooks already.
  const bool has_hooks = own_allocator_is_hooked() || (state->hooks_key >= first_key && !is_running);
  if (has_hooks || program_is_sanitized()) return {};
  return plan_own_of_running();
}

const char* attach_to_running(const char* socket, bool is_changed) {
  // A `blockyard record` that was killed, or met a stopped program, took no hook back.
  const ProcessState& state = *__atomic_load_n(&process, __ATOMIC_ACQUIRE);
  if (is_running && __atomic_load_n(&state.hooks_key, __ATOMIC_ACQUIRE) >= first_key &&
      collector_is_gone(state.collector)) {
    detach_from_running();
  }
  return attach_to(socket, false, is_changed);
}

const char* attach_to_awoken(const char* socket) { return attach_to(socket, true, false); }

void detach_from_running() {
  const KeepErrno keep;
  const Busy busy;
  ProcessState& state = *process;
  if (__atomic_load_n(&state.hooks_key, __ATOMIC_ACQUIRE) < first_key) return;
  if (toggle_signal != 0) sigaction(toggle_signal, &before_toggle, nullptr);
  const bool had_signal = toggle_signal != 0;
  toggle_signal = 0;
  Hello hello;
  hello.pid = getpid();
  hello.parent_key = state.hooks_key;
  hello.purpose = Purpose::leaves;
  const StateLock lock(state);
  // First: with some imports given back, blocks whose allocation nobody saw would be freed.
  end_recording();
  if (is_running) unhook_running_program();
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  const bool have_left = all_have_left(state.mapped);
  tell(socket_name, hello);
  socket_name[0] = '\0';
  inherited_key = 0;
  if (!have_left) return;
  for (Slot* slot = state.mapped.first_slot; slot != nullptr; slot = slot->next) {
    if (slot->walker != nullptr) unwind::Walker::destroy(static_cast<unwind::Walker*>(slot->walker));
    if (slot->spare_stack != nullptr) unmap_spare_stack(slot->spare_stack);
  }
  state.mapped.unmap(!had_signal);
}

const char* own_folder() {
  static char folder[4096] = {};
  if (folder[0] != '\0') return folder;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return folder;
  const char* slash = std::strrchr(info.dli_fname, '/');
  const std::size_t length = slash != nullptr ? static_cast<std::size_t>(slash - info.dli_fname) : 0;
  if (length == 0 || length >= sizeof folder) return slash != nullptr ? "/" : ".";
  std::memcpy(folder, info.dli_fname, length);
  return folder;
}

const char* collector_socket() {
  read_environment();
  return socket_name;
}

const char* preloaded_libraries() {
  read_environment();
  return preloaded;
}

const char* frame_symbol() {
  read_environment();
  return wanted_frame_symbol[0] != '\0' ? wanted_frame_symbol : nullptr;
}

}  // namespace blockyard::record
