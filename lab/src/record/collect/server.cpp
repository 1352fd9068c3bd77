// The collector's loop.
#include "record/collect/server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "record/collect/process_info.hpp"
#include "record/stamp.hpp"

namespace blockyard::record {
namespace {

using Json = nlohmann::json;

constexpr std::size_t merge_slice = 16'384;  // records between two looks at the rings: about 1 ms
constexpr int idle_ms = 5;                   // a ring of 4 MiB lasts 8 ms at 25 million events a second
constexpr int busy_ms = 1;
constexpr std::size_t most_snapshot_entries = 4'000'000;  // 256 MB or so of forked parents' blocks
constexpr std::uint64_t millisecond_ns = 1'000'000;
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t grace_ns = second_ns / 5;  // for a child that was forked to say that it runs

sockaddr_un abstract_address(const std::string& name, socklen_t& bytes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof address.sun_path) throw journal::Error("the socket's name is too long");
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

bool send_welcome(int connection, const Welcome& welcome, int file) {
  Welcome copy = welcome;
  iovec part{&copy, sizeof copy};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = ancillary.data();
    message.msg_controllen = ancillary.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof copy);
}

Json json_of(const JournalSummary& journal) {
  return {{"path", journal.path},         {"events", journal.events},
          {"preamble", journal.preamble}, {"allocations", journal.allocations},
          {"frees", journal.frees},       {"reallocates", journal.reallocates},
          {"frames", journal.frames},     {"threads", journal.threads},
          {"bytes", journal.bytes},       {"seconds", journal.seconds},
          {"error", journal.error}};
}

}  // namespace

Server::Server(ServerSettings settings)
    : settings_(std::move(settings)),
      clock_(base::ticks_are_invariant() ? StampClock::cycles : StampClock::monotonic),
      fences_(!expedited_barrier_available()),
      backlog_words_(std::min<std::uint64_t>(physical_memory_bytes() / 8, std::uint64_t{1} << 30) /
                     sizeof(std::uint64_t)),
      next_key_((stamp_after(StampClock::monotonic) | 0xff) + 1) {
  if (clock_ == StampClock::cycles) ns_per_stamp_ = 1.0 / base::ticks_per_ns();
  if (settings_.connected < 0) listen_at(settings_.socket);
}

Server::~Server() {
  if (listener_ >= 0) close(listener_);
  for (const Process& process : processes_) {
    if (process.pidfd >= 0) close(process.pidfd);
  }
  for (const Expected& child : expected_) close(child.pidfd);
}

void Server::listen_at(const std::string& name) {
  socklen_t bytes = 0;
  const sockaddr_un address = abstract_address(name, bytes);
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      listen(listener_, 1024) != 0) {
    throw journal::Error(std::string("the recorder's socket can't be opened: ") + std::strerror(errno));
  }
}

void Server::run() {
  if (settings_.connected >= 0) welcome(settings_.connected);
  std::uint64_t next_housekeeping = monotonic_ns() + second_ns;
  std::uint64_t next_work = 0;
  bool busy = true;
  while (input_open_ || !processes_.empty() || !expected_.empty() || newcomers_may_come()) {
    wait_for_something(busy ? 0 : (processes_.empty() && !newcomers_may_come() ? 1000 : idle_ms));
    // A child that has just announced itself is likely to attach next: it is not kept waiting by a round of work.
    // Not where the summary is to be told: this round does, and the loop must not end before it.
    const bool is_due = monotonic_ns() >= next_work || (!input_open_ && !told_);
    if (!accept_programs() && !is_due) continue;
    busy = work();
    next_work = monotonic_ns() + idle_ms * millisecond_ns;
    const bool short_of_slots = std::any_of(processes_.begin(), processes_.end(),
                                            [](const Process& process) { return process.session->slots_are_short(); });
    const std::uint64_t now = monotonic_ns();
    if (now >= next_housekeeping || short_of_slots) {
      for (Process& process : processes_) process.session->housekeep();
      next_housekeeping = now + second_ns;
    }
    if (!input_open_ && !told_) tell_summary();
  }
  if (!told_) tell_summary();
}

void Server::wait_for_something(int timeout_ms) {
  std::vector<pollfd> waiting;
  if (listener_ >= 0) waiting.push_back({listener_, POLLIN, 0});
  const std::size_t input = waiting.size();
  if (input_open_) waiting.push_back({STDIN_FILENO, POLLIN, 0});
  const std::size_t first_process = waiting.size();
  for (const Process& process : processes_)
    waiting.push_back({process.session->is_dead() ? -1 : process.pidfd, POLLIN, 0});
  const std::size_t first_expected = waiting.size();
  for (const Expected& child : expected_) waiting.push_back({child.pidfd, POLLIN, 0});
  poll(waiting.data(), waiting.size(), timeout_ms);
  if (input_open_ && (waiting[input].revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) != 0) {
    char ignored[64];
    if (read(STDIN_FILENO, ignored, sizeof ignored) <= 0) input_open_ = false;
  }
  std::size_t index = first_process;
  for (Process& process : processes_) {
    if (waiting[index++].revents != 0) process.session->mark_dead();
  }
  index = first_expected;
  std::erase_if(expected_, [&](const Expected& child) {
    if (waiting[index++].revents == 0) return false;
    close(child.pidfd);
    newcomers_until_ = monotonic_ns() + grace_ns;
    return true;
  });
}

bool Server::newcomers_may_come() const { return monotonic_ns() < newcomers_until_; }

bool Server::accept_programs() {
  bool announced = false;
  bool others = false;
  while (listener_ >= 0) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) break;
    (welcome(connection) ? others : announced) = true;
  }
  return others || !announced;
}

bool Server::welcome(int connection) {
  ucred peer{};
  socklen_t peer_bytes = sizeof peer;
  getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes);
  const timeval patience{1, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  Hello hello;
  Welcome answer;
  const bool understood = recv(connection, &hello, sizeof hello, 0) == static_cast<ssize_t>(sizeof hello) &&
                          hello.version == protocol_version && (peer.uid == geteuid() || geteuid() == 0);
  if (understood) child_is_known(hello);
  const pid_t pid = peer.pid != 0 ? peer.pid : hello.pid;
  const int pidfd = understood ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1;
  if (pidfd < 0) {
    if (hello.announces != 0) newcomers_until_ = monotonic_ns() + grace_ns;  // it has ended already
    send_welcome(connection, answer, -1);
    close(connection);
    return hello.announces == 0;
  }
  stop_expecting(pid);
  if (hello.announces != 0) {
    expected_.push_back({pid, pidfd});
    close(connection);
    return false;
  }
  end_earlier_image(pid);
  SessionSettings session;
  session.pid = pid;
  session.same_namespace = hello.pid == pid;
  session.key = next_key_++;
  session.begin = stamp_after(clock_);
  session.slots = settings_.slots;
  session.ring_words = settings_.ring_words;
  // Where address space is limited the program must not lose half of it to rings.
  while (session.slots > 16 && region_bytes(session.slots, session.ring_words) > hello.address_space_limit / 16)
    session.slots /= 2;
  while (session.ring_words > 4 * max_record_words &&
         region_bytes(session.slots, session.ring_words) > hello.address_space_limit / 16) {
    session.ring_words /= 2;
  }
  if (first_begin_ == 0) first_begin_ = session.begin;
  session.output = output_settings(pid, hello.engine_only != 0);
  session.plan = window_plan();
  session.plan.open_at = session.plan.open_at == never ? never : std::max(session.plan.open_at, session.begin);
  answer.clock = clock_;
  answer.key = session.key;
  answer.signal = settings_.signal;
  answer.fences = fences_ ? 1 : 0;
  answer.collector = getpid();
  try {
    Process process;
    process.session = std::make_unique<Session>(std::move(session));
    answer.region_bytes = process.session->shared().bytes();
    process.pidfd = pidfd;
    process.pid = pid;
    process.parent_key = hello.parent_key;
    process.fork_stamp = hello.fork_stamp;
    Session* made = process.session.get();
    made->interpreter().on_fork = [this, made](std::uint64_t stamp, const LiveBlocks& live) {
      const Fork fork{made->settings().key, stamp};
      if (early_children_.erase(fork) == 0) childless_forks_.insert(fork);
      keep_snapshot(fork.first, fork.second, {live.in_order(), made->threads()});
    };
    if (send_welcome(connection, answer, made->shared().file())) processes_.push_back(std::move(process));
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "blockyard: process %d is not recorded: %s\n", static_cast<int>(pid), error.what());
    send_welcome(connection, Welcome{}, -1);
  }
  close(connection);
  return true;
}

void Server::stop_expecting(pid_t pid) {
  std::erase_if(expected_, [pid](const Expected& child) {
    if (child.pid != pid) return false;
    close(child.pidfd);
    return true;
  });
}

void Server::child_is_known(const Hello& hello) {
  if (hello.fork_stamp == 0) return;
  const Fork fork{hello.parent_key, hello.fork_stamp};
  if (childless_forks_.erase(fork) == 0 && hello.announces != 0) early_children_.insert(fork);
}

// The same process in a new image: nothing of the old one runs any more. It is written out at once, so that it is known
// whether it took the name of the first journal.
void Server::end_earlier_image(pid_t pid) {
  for (auto process = processes_.begin(); process != processes_.end();) {
    Session& session = *process->session;
    if (process->pid != pid) {
      ++process;
      continue;
    }
    session.mark_dead();
    if (!session.has_begun()) try_to_begin(*process);
    if (!session.has_begun()) {  // its parent's blocks are still to come
      ++process;
      continue;
    }
    session.drain(stamp_after(clock_));
    while (!session.is_drained()) session.merge_some(merge_slice);
    finish(*process);
    process = processes_.erase(process);
  }
}

OutputSettings Server::output_settings(pid_t pid, bool engine_only) {
  OutputSettings output;
  output.overwrite = settings_.overwrite;
  output.ns_per_stamp = ns_per_stamp_;
  output.header.program = program_of(pid);
  output.header.command = command_of(pid);
  output.header.machine = machine_line();
  output.header.recorder = "blockyard record " BLOCKYARD_VERSION;
  output.header.ticks_per_ns = clock_ == StampClock::cycles ? 1.0 / ns_per_stamp_ : 0;
  output.header.has_addresses = settings_.addresses;
  const unsigned image = ++images_[pid];
  if (engine_only) return output;
  // The first process's first image with a window gets the name that was asked for: often a script that executes the
  // program.
  if (first_pid_ == 0) first_pid_ = pid;
  if (pid == first_pid_ && !first_name_taken_) {
    output.path = settings_.output;
    return output;
  }
  output.path = own_path(pid, image);
  return output;
}

std::string Server::own_path(pid_t pid, unsigned image) const {
  const std::filesystem::path base(settings_.output);
  std::string name = base.stem().string() + "." + std::to_string(pid);
  if (image > 1) name += "." + std::to_string(image);
  return base.parent_path() / (name + base.extension().string());
}

WindowPlan Server::window_plan() const {
  const auto stamps = [this](double seconds) { return static_cast<std::uint64_t>(seconds * 1e9 / ns_per_stamp_); };
  WindowPlan plan;
  plan.open_at = settings_.wait ? never : first_begin_ + stamps(settings_.after.value_or(0));
  if (!settings_.length) return plan;
  if (settings_.wait || settings_.signal != 0) {
    plan.length = stamps(*settings_.length);
  } else {
    plan.close_at = plan.open_at + stamps(*settings_.length);
  }
  return plan;
}

void Server::keep_snapshot(std::uint64_t key, std::uint64_t stamp, ForkSnapshot snapshot) {
  snapshot_entries_ += snapshot.blocks.size();
  snapshots_[{key, stamp}] = std::move(snapshot);
  // Children that never allocate leave theirs behind: the oldest go first.
  while (snapshot_entries_ > most_snapshot_entries && snapshots_.size() > 1) {
    auto oldest = std::min_element(snapshots_.begin(), snapshots_.end(), [](const auto& left, const auto& right) {
      return left.first.second < right.first.second;
    });
    snapshot_entries_ -= oldest->second.blocks.size();
    snapshots_.erase(oldest);
  }
}

void Server::try_to_begin(Process& process) {
  if (process.fork_stamp == 0) {
    process.session->begin(nullptr);
    return;
  }
  const auto found = snapshots_.find({process.parent_key, process.fork_stamp});
  if (found != snapshots_.end()) {
    process.session->begin(&found->second);
    snapshot_entries_ -= found->second.blocks.size();
    snapshots_.erase(found);
    return;
  }
  const bool parent_lives = std::any_of(processes_.begin(), processes_.end(), [&](const Process& other) {
    return other.session->settings().key == process.parent_key;
  });
  if (!parent_lives) process.session->begin(nullptr);
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
    // With too much in hand the rings fill and the program waits, which is counted, rather than memory running out.
    if (backlog < backlog_words_ || session.is_dead()) busy |= session.drain(now) > session.settings().ring_words / 64;
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
  Session& session = *process.session;
  session.finish(stamp_after(clock_));
  const OutputSettings& output = session.settings().output;
  Json journals = Json::array();
  if (process.pid == first_pid_ && !session.interpreter().journals().empty()) first_name_taken_ = true;
  for (const JournalSummary& journal : session.interpreter().journals()) journals.push_back(json_of(journal));
  const Repairs& repairs = session.interpreter().repairs();
  const Json image = {{"pid", process.pid},
                      {"program", output.header.program},
                      {"running", false},
                      {"threads", session.threads().size()},
                      {"journals", journals},
                      {"waits", session.waits()},
                      {"waited_ms", static_cast<double>(session.waited()) * ns_per_stamp_ * 1e-6},
                      {"threads_refused", session.shared().region().control().threads_refused.load()},
                      {"unknown_frees", repairs.unknown_frees},
                      {"missed_frees", repairs.missed_frees},
                      {"split_reallocates", repairs.split_reallocates}};
  finished_.push_back(image.dump(-1, ' ', false, Json::error_handler_t::replace));
  close(process.pidfd);
}

void Server::tell_summary() {
  // Give what just ended a moment to be written out, and a child that was just forked one to say so; what runs on is
  // named as running.
  const std::uint64_t deadline = monotonic_ns() + grace_ns;
  const auto some_are_ending = [this] {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const Process& process) { return process.session->is_dead(); });
  };
  const auto some_may_end = [this] {
    return !processes_.empty() || !expected_.empty() || !childless_forks_.empty() || newcomers_may_come();
  };
  while (some_are_ending() || (some_may_end() && monotonic_ns() < deadline)) {
    wait_for_something(busy_ms);
    accept_programs();
    work();
  }
  told_ = true;
  std::printf("%s\n", summary().c_str());
  std::fflush(stdout);
  // What runs on must not hold the pipe of somebody who waits for its end.
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
}

std::string Server::summary() const {
  Json images = Json::array();
  for (const std::string& image : finished_) images.push_back(Json::parse(image));
  for (const Process& process : processes_) {
    images.push_back({{"pid", process.pid},
                      {"program", process.session->settings().output.header.program},
                      {"running", true},
                      {"path", process.session->settings().output.path}});
  }
  for (const Expected& child : expected_) {
    const auto images_before = images_.find(child.pid);
    const unsigned image = images_before == images_.end() ? 1 : images_before->second + 1;
    images.push_back({{"pid", child.pid},
                      {"program", program_of(child.pid)},
                      {"running", true},
                      {"silent", true},
                      {"path", own_path(child.pid, image)}});
  }
  const Json all = {
      {"images", images}, {"clock", clock_ == StampClock::cycles ? "cycles" : "monotonic"}, {"fences", fences_}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace blockyard::record
