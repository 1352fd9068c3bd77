#include "record/linux/collect/server.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "clock/clock.hpp"
#include "record/linux/collect/process_info.hpp"
#include "record/linux/stamp.hpp"

namespace blockyard::record {
namespace {

constexpr std::size_t merge_slice = 16'384;  // records between two drains of the rings: about 1 ms
constexpr int idle_ms = 5;                   // a ring of 4 MiB lasts 8 ms at 25 million events per second
constexpr int ending_ms = 1;
// A thread begins with a ring for about 3,000 events. The first that fill theirs before it is emptied get a large one:
// of 300 threads that all allocate without pause, as many as fit into 64 MiB.
constexpr std::uint64_t small_words = 1 << 13;
constexpr std::uint32_t most_large = 16;
static_assert(small_words >= 4 * max_record_words && most_large <= most_large_rings);
constexpr std::uint64_t millisecond_ns = 1'000'000;
// Of a message, cut, and with its NUL.
template <std::size_t size>
std::string text_of(const char (&text)[size]) {
  return {text, strnlen(text, size)};
}

bool has_ended(const FileDescriptor& pidfd) {
  pollfd one{pidfd.get(), POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

constexpr std::uint64_t second_ns = 1'000'000'000;

}  // namespace

Server::Server(ServerSettings settings)
    : settings_(std::move(settings)),
      clock_(clock::ticks_are_invariant() ? StampClock::cycles : StampClock::monotonic),
      fences_(!expedited_barrier_available()),
      backlog_words_(std::min<std::uint64_t>(physical_memory_bytes() / 8, std::uint64_t{1} << 30) /
                     sizeof(std::uint64_t)),
      next_key_((stamp_after(StampClock::monotonic) | 0xff) + 1),
      recording_(std::to_string(next_key_)),
      names_(settings_.output, settings_.overwrite) {
  if (clock_ == StampClock::cycles) ns_per_stamp_ = 1.0 / clock::ticks_per_ns();
  if (settings_.connected >= 0) return;
  listeners_.push_back(listen_at(settings_.socket, true));
  if (settings_.socket.starts_with('/')) listeners_.push_back(listen_at(settings_.socket, false));
}

void Server::run() {
  if (settings_.connected >= 0) welcome(FileDescriptor(settings_.connected));
  std::uint64_t next_housekeeping = monotonic_ns() + second_ns;
  std::uint64_t next_work = 0;
  bool busy = true;
  while (input_open_ || !processes_.empty() || !forks_.expected().empty() || forks_.newcomers_may_come()) {
    wait_for_something(busy ? 0 : (processes_.empty() && !forks_.newcomers_may_come() ? 1000 : idle_ms));
    // A child that has just announced itself is likely to attach next: it is not kept waiting by a round of work. But
    // the round that prints the summary is never skipped, because the loop must not end before it.
    const bool summary_is_due = !input_open_ && !summary_printed_;
    if (!accept_programs() && !summary_is_due && monotonic_ns() < next_work) continue;
    busy = work();
    next_work = monotonic_ns() + idle_ms * millisecond_ns;
    const bool short_of_slots = std::any_of(processes_.begin(), processes_.end(),
                                            [](const Process& process) { return process.session->slots_are_short(); });
    const std::uint64_t now = monotonic_ns();
    if (now >= next_housekeeping || short_of_slots) {
      for (Process& process : processes_) process.session->housekeep();
      next_housekeeping = now + second_ns;
    }
    if (!input_open_ && !summary_printed_) print_summary();
  }
  if (!summary_printed_) print_summary();
}

void Server::wait_for_something(int timeout_ms) {
  std::vector<pollfd> waiting;
  // poll() passes over negative numbers.
  waiting.push_back({input_open_ ? STDIN_FILENO : -1, POLLIN, 0});
  for (const FileDescriptor& listener : listeners_) waiting.push_back({listener.get(), POLLIN, 0});
  const std::size_t first_process = waiting.size();
  for (const Process& process : processes_)
    waiting.push_back({process.session->is_dead() ? -1 : process.pidfd.get(), POLLIN, 0});
  const std::size_t first_expected = waiting.size();
  forks_.add_to(waiting);
  poll(waiting.data(), waiting.size(), timeout_ms);
  if ((waiting[0].revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) != 0) {
    char ignored[64];
    if (read(STDIN_FILENO, ignored, sizeof ignored) <= 0) input_open_ = false;
  }
  std::size_t index = first_process;
  for (Process& process : processes_) {
    if (waiting[index++].revents != 0) process.session->mark_dead();
  }
  forks_.forget_ended(std::span(waiting).subspan(first_expected));
}

bool Server::accept_programs() {
  bool announced = false;
  bool others = false;
  for (const FileDescriptor& listener : listeners_) {
    for (;;) {
      const FileDescriptor connection = accept_program(listener);
      if (!connection.is_open()) break;
      (welcome(connection) ? others : announced) = true;
    }
  }
  return others || !announced;
}

bool Server::welcome(const FileDescriptor& connection) {
  std::optional<Caller> caller = identify(connection);
  if (!caller) {
    send_welcome(connection, Welcome{}, -1);
    return true;
  }
  if (caller->hello.purpose == Purpose::executes || caller->hello.purpose == Purpose::stays) {
    expect_program(*caller);
    return false;
  }
  if (caller->hello.purpose == Purpose::leaves) {
    for (Process& process : processes_) {
      if (process.session->settings().key == caller->hello.parent_key) process.session->mark_left();
    }
    return true;
  }
  to_come_.erase(caller->pid);
  const bool announces = caller->hello.purpose == Purpose::forked;
  forks_.meet(caller->hello);
  if (!caller->pidfd.is_open()) {  // it has ended already
    if (announces) forks_.wait_for_newcomers();
    send_welcome(connection, Welcome{}, -1);
    return !announces;
  }
  forks_.stop_expecting(caller->pid);
  const std::uint64_t process = announces ? 0 : number_of(*caller);
  if (!announces && !is_wanted(*caller, process)) {
    send_welcome(connection, Welcome{}, -1);
    return true;
  }
  if (announces && settings_.children == "no") return false;
  if (announces) {
    forks_.expect(caller->pid, std::move(caller->pidfd));
  } else {
    record(connection, std::move(*caller), process);
  }
  return !announces;
}

void Server::expect_program(const Caller& caller) {
  const Hello& hello = caller.hello;
  pid_t pid = caller.pid;
  if (hello.spawned != 0) {
    // Where the program sees other process numbers than we do, nobody knows which process it means.
    if (hello.pid != caller.pid) return;
    pid = hello.spawned;
    // It may have introduced itself by now.
    const auto is_it = [pid](const Process& process) { return process.pid == pid; };
    if (recorded_pids_.contains(pid) || std::any_of(processes_.begin(), processes_.end(), is_it)) return;
  }
  if (hello.purpose == Purpose::stays) {
    to_come_.erase(pid);
  } else {
    to_come_[pid] = text_of(hello.program);
  }
}

std::uint64_t Server::number_of(const Caller& caller) {
  for (const Process& process : processes_) {
    // Its number may have come round: then the process that had it has ended.
    if (process.pid == caller.pid && !process.session->is_dead() && !has_ended(process.pidfd)) return process.number;
  }
  return next_process_++;
}

bool Server::is_wanted(const Caller& caller, std::uint64_t process) const {
  if (settings_.children.empty() || first_process_ == 0 || process == first_process_) return true;
  if (settings_.children == "no") return false;
  const auto is_it = [this](const std::string& path) {
    return std::filesystem::path(path).filename() == settings_.children;
  };
  // A script is the first argument of its interpreter.
  const std::vector<std::string> command = command_of(caller.pid);
  return is_it(program_of(caller.pid)) || (!command.empty() && is_it(command[0])) ||
         (command.size() > 1 && is_it(command[1]));
}

void Server::record(const FileDescriptor& connection, Caller caller, std::uint64_t number) {
  const bool records_malloc = caller.hello.engine_only == 0;
  if (records_malloc && first_process_ == 0) first_process_ = number;
  end_earlier_image(caller.pid);
  recorded_pids_.insert(caller.pid);
  Welcome answer;
  answer.clock = clock_;
  answer.signal = settings_.signal;
  answer.fences = fences_ ? 1 : 0;
  answer.collector = caller.hello.pid == caller.pid ? getpid() : 0;
  answer.stack_depth = settings_.stack_depth;
  answer.verify_stacks = settings_.verify_stacks ? 1 : 0;
  try {
    Process process;
    process.session = std::make_unique<Session>(session_settings(caller, number));
    process.number = number;
    process.pidfd = std::move(caller.pidfd);
    process.pid = caller.pid;
    process.parent_key = caller.hello.parent_key;
    process.fork_stamp = caller.hello.fork_stamp;
    Session* made = process.session.get();
    if (settings_.children != "no")
      made->interpreter().on_fork = [this, made](std::uint64_t stamp, const LiveBlocks& live) {
        forks_.keep_snapshot(made->settings().key, stamp,
                             {live.in_order(), made->threads(), made->interpreter().book().mapped()});
      };
    answer.key = made->settings().key;
    if (send_welcome(connection, answer, made->shared().file())) processes_.push_back(std::move(process));
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "blockyard: process %d is not recorded: %s\n", static_cast<int>(caller.pid), error.what());
    send_welcome(connection, Welcome{}, -1);
  }
}

SessionSettings Server::session_settings(const Caller& caller, std::uint64_t process) {
  SessionSettings session;
  session.pid = caller.pid;
  session.same_namespace = caller.hello.pid == caller.pid;
  session.key = next_key_++;
  session.begin = stamp_after(clock_);
  session.layout = {settings_.slots, most_large, std::min(small_words, settings_.ring_words), settings_.ring_words};
  // Where address space is limited, the rings must not take much of the program's.
  const auto is_too_large = [&] {
    return session.layout.large_count * session.layout.large_bytes() > caller.hello.address_space_limit / 16;
  };
  while (session.layout.large_count > 0 && is_too_large()) session.layout.large_count /= 2;
  if (first_begin_ == 0) first_begin_ = session.begin;
  const Hello& hello = caller.hello;
  session.hooked = text_of(hello.allocator);
  session.own = text_of(hello.own_allocator);
  if (session.own == ".") session.own = std::filesystem::path(program_of(caller.pid)).filename();
  session.own_is_hooked = hello.own_is_hooked != 0;
  session.was_running = hello.is_running != 0;
  session.is_fresh = !session.was_running && caller.hello.fork_stamp == 0 && caller.hello.parent_key == 0;
  session.output = output_settings(caller, process);
  if (session.own_is_hooked && !session.own.empty()) session.output.header.allocator = session.own;
  session.plan = window_plan(session.begin);
  return session;
}

OutputSettings Server::output_settings(const Caller& caller, std::uint64_t process) {
  const pid_t pid = caller.pid;
  const Hello& hello = caller.hello;
  OutputSettings output;
  if (hello.engine_only == 0) {
    if (process == first_process_) summary_.rename(names_.begin_first());
    output.path = names_.name_image(pid, process == first_process_);
  }
  output.overwrite = settings_.overwrite;
  output.ns_per_stamp = ns_per_stamp_;
  output.header.program = program_of(pid);
  output.header.command = command_of(pid);
  output.header.machine = machine_line();
  output.header.allocator = text_of(hello.allocator);
  output.header.recording = recording_;
  output.header.recorder = "blockyard record " BLOCKYARD_VERSION;
  output.header.ticks_per_ns = clock_ == StampClock::cycles ? 1.0 / ns_per_stamp_ : 0;
  output.header.has_addresses = settings_.addresses;
  output.stacks = stacks_;
  output.tags = tags_;
  return output;
}

WindowPlan Server::window_plan(std::uint64_t begin) const {
  const auto stamps = [this](double seconds) { return static_cast<std::uint64_t>(seconds * 1e9 / ns_per_stamp_); };
  const std::uint64_t scheduled = first_begin_ + stamps(settings_.after.value_or(0));
  WindowPlan plan;
  plan.open_at = settings_.wait ? never : std::max(scheduled, begin);
  if (!settings_.length) return plan;
  if (settings_.wait || settings_.signal != 0) {
    plan.length = stamps(*settings_.length);
  } else {
    plan.close_at = scheduled + stamps(*settings_.length);
  }
  return plan;
}

// The process has a new image, and nothing of the old one runs any more. The old one is written out at once, so that it
// is known whether it took the name of the first journal.
void Server::end_earlier_image(pid_t pid) {
  for (auto process = processes_.begin(); process != processes_.end();) {
    Session& session = *process->session;
    if (process->pid == pid) {
      session.mark_dead();
      if (!session.has_begun()) try_to_begin(*process);
    }
    if (process->pid != pid || !session.has_begun()) {  // a child may have to wait for its parent's blocks
      ++process;
      continue;
    }
    session.drain(stamp_after(clock_));
    while (!session.is_drained()) session.merge_some(merge_slice);
    finish(*process);
    process = processes_.erase(process);
  }
}

void Server::try_to_begin(Process& process) {
  std::optional<ForkSnapshot> inherited;
  if (process.fork_stamp != 0) {
    inherited = forks_.take_snapshot(process.parent_key, process.fork_stamp);
    const auto is_parent = [&](const Process& other) { return other.session->settings().key == process.parent_key; };
    // While the parent lives, the fork's mark is still to come.
    if (!inherited && std::any_of(processes_.begin(), processes_.end(), is_parent)) return;
  }
  process.session->begin(inherited ? &*inherited : nullptr);
}

bool Server::work() {
  const std::uint64_t now = stamp_after(clock_);
  if (!processes_.empty()) expedited_barrier();
  std::size_t backlog = 0;
  for (const Process& process : processes_) backlog += process.session->queued_words();
  bool busy = false;
  for (auto process = processes_.begin(); process != processes_.end();) {
    Session& session = *process->session;
    if (!session.has_begun()) try_to_begin(*process);
    // With too large a backlog the rings are left to fill: the program waits, which is counted, and memory does not run
    // out.
    if (backlog < backlog_words_ || session.is_dead()) busy |= session.drain(now) > small_words;
    busy |= session.merge_some(merge_slice) == merge_slice;
    if (session.is_drained()) {
      finish(*process);
      process = processes_.erase(process);
    } else {
      busy |= session.is_dead();
      ++process;
    }
  }
  return busy;
}

void Server::finish(Process& process) {
  process.session->finish(stamp_after(clock_));
  summary_.add_ended(process.pid, process.number, *process.session, ns_per_stamp_);
  std::vector<std::string> journals;
  for (const JournalSummary& journal : process.session->interpreter().malloc_journals())
    journals.push_back(journal.path);
  if (process.number == first_process_) {
    summary_.rename(names_.end_first(journals));
  } else {
    ended_journals_.insert(ended_journals_.end(), journals.begin(), journals.end());
  }
}

void Server::print_summary() {
  // Who recorded a program that ran before wants no more of it.
  for (Process& process : processes_) {
    if (process.session->settings().was_running && !process.session->is_dead()) process.session->mark_left();
  }
  // What just ended gets a moment to be written out, and a child that was just forked one to announce itself.
  const std::uint64_t deadline = monotonic_ns() + Forks::grace_ns;
  const auto some_are_ending = [this] {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const Process& process) { return process.session->is_dead(); });
  };
  const auto some_may_end = [this] { return !processes_.empty() || forks_.children_may_come(); };
  bool busy = true;
  while (some_are_ending() || (some_may_end() && monotonic_ns() < deadline)) {
    wait_for_something(busy ? 0 : ending_ms);  // whoever recorded waits for what is left
    accept_programs();
    busy = work();
  }
  summary_printed_ = true;
  summary_.rename(names_.gather(ended_journals_));
  for (const auto& [pid, program] : to_come_) summary_.add_unseen(pid, program);
  Summary summary = summary_;
  for (const Process& process : processes_) {
    const OutputSettings& output = process.session->settings().output;
    summary.add_running(process.pid, output.header.program, output.path, false);
  }
  for (const Forks::Child& child : forks_.expected())
    summary.add_running(child.pid, program_of(child.pid), names_.next_path(child.pid), true);
  std::printf("%s\n", summary.text(clock_, fences_).c_str());
  std::fflush(stdout);
  // Processes that are still recorded must not hold the pipe of a reader that waits for its end.
  const FileDescriptor nowhere(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (nowhere.is_open()) dup2(nowhere.get(), STDOUT_FILENO);
}

}  // namespace blockyard::record
