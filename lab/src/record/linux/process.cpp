#include "record/linux/process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/kept_errno.hpp"
#include "record/linux/asleep.hpp"
#include "record/linux/attach.hpp"
#include "record/linux/loaded_objects.hpp"
#include "record/linux/own_allocator.hpp"
#include "record/linux/state_lock.hpp"
#include "record/linux/symbols.hpp"
#include "record/linux/variables.hpp"
#include "record/linux/verify.hpp"
#include "record/linux/walk_stack.hpp"

namespace blockyard::record {
namespace {

ProcessState before_any{};  // used until the page that the kernel wipes is there

// Survives a fork, unlike the process state: the recording that the child comes from.
std::uint64_t inherited_key = 0;
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
  if (variables.socket[0] == '\0') return;
  const base::KeptErrno kept;
  Hello hello;
  hello.pid = getpid();
  hello.parent_key = inherited_key;
  hello.fork_stamp = self.fork_stamp;
  hello.purpose = Purpose::forked;
  tell(variables.socket, hello);
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

// A program that never allocates is recorded too: its empty journal says just that.
__attribute__((constructor)) void attach_at_load() {
  prepare_for_hooks();
  if (variables.watched_limits[0] != '\0') watch_limits(variables.watched_limits);
  // Where the library is loaded to be attached later: no fork may be under way then that does not know of ObjectsLock.
  if (variables.socket[0] == '\0' && !program_is_sanitized()) set_fork_handlers();
  if (variables.socket[0] == '\0' && variables.asleep_folder[0] != '\0' && !program_is_sanitized()) {
    const Busy busy;
    Hello unused;
    name_allocator(unused);
    fall_asleep(variables.asleep_folder);
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

const char* attach_to(const char* socket, bool has_hooks, bool is_changed) {
  const base::KeptErrno kept;
  const Busy busy;
  if (program_is_sanitized()) return "it is built with a sanitizer, whose own malloc stands in front of the recorder";
  ProcessState* state = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
  const StateLock lock(*state);
  if (state->hooks_key >= first_key || state->engine_key >= first_key) return "it is being recorded already";
  const int connection = connect_to_collector(socket);
  if (connection < 0) return "it can't reach the collector's socket";
  const timeval patience{10, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  variables.are_read = true;
  std::strncpy(variables.socket, socket, sizeof variables.socket - 1);
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
  variables.socket[0] = '\0';
  return "the collector refused it";
}

}  // namespace

ProcessState* process = &before_any;

void decide() {
  ProcessState* state = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
  const StateLock lock(*state);
  if (state != __atomic_load_n(&process, __ATOMIC_ACQUIRE)) return;  // another thread attached meanwhile
  if (state->hooks_key != key_undecided) return;
  read_environment();
  const bool may_be_recorded = variables.socket[0] != '\0' && !program_is_sanitized() &&
                               (variables.watched_limits[0] == '\0' || !is_around_the_program());
  const int connection = may_be_recorded ? connect_to_collector(variables.socket) : -1;
  if (!attach_over(connection, false)) __atomic_store_n(&process->hooks_key, key_off, __ATOMIC_RELEASE);
}

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

bool open_engine_recording() {
  const base::KeptErrno kept;
  const Busy busy;
  ProcessState* state = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
  const StateLock lock(*state);
  if (__atomic_load_n(&process->engine_key, __ATOMIC_ACQUIRE) >= first_key) return true;
  return attach_over(start_collector(own_folder()), true);
}

std::span<const CodeChange> plan_for_running() {
  const base::KeptErrno kept;
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
  const base::KeptErrno kept;
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
  tell(variables.socket, hello);
  variables.socket[0] = '\0';
  inherited_key = 0;
  if (!have_left) return;
  for (Slot* slot = state.mapped.first_slot; slot != nullptr; slot = slot->next) {
    end_walks(*slot);
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

}  // namespace blockyard::record
