// One process image from its handshake to its last record.
#include "record/linux/collect/session.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "journal/utc_time.hpp"
#include "record/linux/collect/process_info.hpp"

namespace blockyard::record {
namespace {

std::string now_and_age(pid_t pid) {
  std::string now = "at " + journal::utc_now();
  const std::optional<std::uint64_t> age = age_seconds(pid);
  if (!age) return now;
  const auto [unit, name] = *age < 120    ? std::pair(1, " s")
                            : *age < 7200 ? std::pair(60, " min")
                                          : std::pair(3600, " h");
  return now + ", " + std::to_string(*age / static_cast<std::uint64_t>(unit)) + name + " after its start";
}

}  // namespace

SharedRegion::SharedRegion(const Layout& layout) : layout_(layout) {
  // Sized here and not in the program, which may run under a file-size limit. Memory is taken only as rings fill.
  file_ = memfd_create("blockyard-rings", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(layout.bytes())) != 0) {
    throw std::system_error(errno, std::generic_category(), "memory for the rings");
  }
  void* base = mmap(nullptr, layout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (base == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mapping the rings");
  region_.base = static_cast<std::byte*>(base);
  auto* control = new (base) Control;
  control->slot_count = layout.slot_count;
  control->large_count = layout.large_count;
  control->small_words = layout.small_words;
  control->large_words = layout.large_words;
}

SharedRegion::~SharedRegion() {
  if (region_.base != nullptr) munmap(region_.base, layout_.bytes());
  if (file_ >= 0) close(file_);
}

void SharedRegion::discard(std::uint64_t offset, std::uint64_t bytes) {
  // Best effort: a kernel that can't punch holes keeps the memory.
  static_cast<void>(fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                              static_cast<off_t>(bytes)) == 0);
}

void SharedRegion::discard_rings(std::uint32_t slot) {
  discard(layout_.slot_at(slot) + page_bytes, layout_.slot_bytes() - page_bytes);
  const std::uint32_t large = region_.slot(slot).large.load();
  if (large != 0) discard(layout_.large_at(large - 1), layout_.large_bytes());
}

Session::Session(SessionSettings settings)
    : settings_(std::move(settings)),
      shared_(settings_.layout),
      attached_(settings_.was_running ? now_and_age(settings_.pid) : ""),
      first_name_(thread_name(settings_.pid, static_cast<std::uint64_t>(settings_.pid))),
      unseen_(settings_.output.header.program, settings_.hooked, settings_.own, settings_.own_is_hooked),
      rings_(shared_.region(), 0, settings_.begin),
      interpreter_(output_settings(), settings_.plan, threads_) {
  unseen_.look(settings_.pid);
  interpreter_.on_engine_closed = [this](bool complete) {
    Control& control = shared_.region().control();
    control.engine_failed.store(complete ? 0 : 1);
    control.engine_closed.fetch_add(1);
  };
}

OutputSettings Session::output_settings() const {
  OutputSettings output = settings_.output;
  output.unseen = [this] { return unseen(); };
  return output;
}

std::vector<std::string> Session::unseen() const {
  // An engine that reports its own blocks records nothing of malloc.
  if (settings_.output.path.empty()) return {};
  auto said =
      unseen_.sentences(interpreter_.allocations(), interpreter_.most_live_bytes(), settings_.is_fresh && dead_);
  if (settings_.was_running) said.insert(said.begin(), blocks_from_before());
  return said;
}

std::string Session::blocks_from_before() const {
  const Repairs& repairs = interpreter_.repairs();
  const std::string begin =
      "the recording began while the program ran, " + attached_ + ", so what lived before is in no figure: ";
  if (repairs.before_frees == 0) return begin + "none of it was freed while it was recorded";
  const bool is_one = repairs.before_frees == 1;
  // An allocator that is linked in is not asked.
  const std::string of = settings_.own_is_hooked && !settings_.own.empty() ? " of at least " : " of ";
  const std::string of_bytes =
      repairs.before_bytes == 0 ? " of unknown size "
                                : of + std::to_string(repairs.before_bytes) + " bytes, as the allocator rounds them, ";
  return begin + std::to_string(repairs.before_frees) + (is_one ? " such block" : " such blocks") + of_bytes +
         (is_one ? "was" : "were") + " freed while it was recorded";
}

void Session::begin(const ForkSnapshot* inherited) {
  begun_ = true;
  if (inherited == nullptr) return;
  threads_ = inherited->threads;
  rings_ = Rings(shared_.region(), static_cast<std::uint32_t>(threads_.size()), settings_.begin);
  interpreter_.inherit(inherited->blocks, inherited->modules);
}

std::size_t Session::drain(std::uint64_t now) {
  if (!begun_) return 0;
  const std::size_t words = rings_.drain(now, dead_);
  adopt_new_threads();
  for (const std::uint32_t thread : rings_.take_ended_threads()) interpreter_.thread_ended(thread);
  return words;
}

std::size_t Session::merge_some(std::size_t budget) {
  shared_.region().control().heartbeat.fetch_add(1, std::memory_order_relaxed);
  if (!begun_) return 0;
  const std::vector<Lane*> lanes = rings_.lanes();
  const std::size_t merged = merge(lanes, rings_.watermark(), budget, interpreter_);
  if (merged == budget) return merged;
  // All that the watermark allows is merged: time has advanced to the watermark.
  if (!dead_) {
    interpreter_.advance(rings_.watermark());
    const std::uint32_t toggles = shared_.region().control().toggles.load();
    for (; toggles_seen_ != toggles; ++toggles_seen_) interpreter_.toggle(rings_.watermark());
  }
  if (interpreter_.is_over() && !stopped_) {
    stopped_ = true;
    rings_.stop();
  }
  return merged;
}

bool Session::is_drained() const { return begun_ && dead_ && rings_.queued_words() == 0; }

void Session::finish(std::uint64_t now) { interpreter_.finish(now, left_); }

void Session::adopt_new_threads() {
  for (const Rings::NewThread& thread : rings_.take_new_threads()) {
    threads_.resize(std::max<std::size_t>(threads_.size(), thread.thread + 1));
    threads_[thread.thread].tid = thread.tid;
    running_.push_back(thread.thread);
    read_name(thread.thread);
  }
}

// A thread starts with the name of its creator, which says nothing: the program's own name belongs to its first thread
// only.
void Session::read_name(std::uint32_t thread) {
  if (!settings_.same_namespace) return;
  const bool is_first = std::cmp_equal(threads_[thread].tid, settings_.pid);
  std::string name = thread_name(settings_.pid, threads_[thread].tid);
  // A program that ran for milliseconds is gone by now.
  if (is_first && name.empty()) name = first_name_;
  if (name.empty() || (name == first_name_ && !is_first) || name == threads_[thread].name) return;
  // The kernel cuts names to 15 bytes; the name that the program itself gave is longer.
  if (threads_[thread].name.starts_with(name)) return;
  threads_[thread].name = name;
  interpreter_.thread_renamed(thread);
}

void Session::housekeep() {
  if (!dead_) unseen_.look(settings_.pid);
  if (settings_.same_namespace && !dead_) {
    std::erase_if(running_, [&](std::uint32_t thread) { return !thread_exists(settings_.pid, threads_[thread].tid); });
    for (const std::uint32_t thread : running_) read_name(thread);
    const auto is_gone = [&](std::uint32_t tid) { return !thread_exists(settings_.pid, tid); };
    rings_.release_slots(is_gone, [this](std::uint32_t slot) { shared_.discard_rings(slot); });
  }
  interpreter_.flush();
}

}  // namespace blockyard::record
