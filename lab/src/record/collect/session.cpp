// One process image from its handshake to its last record.
#include "record/collect/session.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/collect/process_info.hpp"

namespace blockyard::record {

SharedRegion::SharedRegion(std::uint32_t slots, std::uint64_t ring_words) : bytes_(region_bytes(slots, ring_words)) {
  // Sized here and not in the program, which may run under a file-size limit. Memory is taken only as rings fill.
  file_ = memfd_create("blockyard-rings", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0) {
    throw std::system_error(errno, std::generic_category(), "memory for the rings");
  }
  void* base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (base == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mapping the rings");
  region_.base = static_cast<std::byte*>(base);
  auto* control = new (base) Control;
  control->slot_count = slots;
  control->ring_words = ring_words;
}

SharedRegion::~SharedRegion() {
  if (region_.base != nullptr) munmap(region_.base, bytes_);
  if (file_ >= 0) close(file_);
}

void SharedRegion::discard_ring(std::uint32_t slot) {
  const auto offset = static_cast<off_t>(reinterpret_cast<std::byte*>(region_.ring(slot)) - region_.base);
  const auto bytes = static_cast<off_t>(region_.control().ring_words * sizeof(std::uint64_t));
  // Best effort: a kernel that can't punch holes keeps the memory.
  static_cast<void>(fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes) == 0);
}

Session::Session(SessionSettings settings)
    : settings_(std::move(settings)),
      shared_(settings_.slots, settings_.ring_words),
      first_name_(thread_name(settings_.pid, static_cast<std::uint64_t>(settings_.pid))),
      rings_(shared_.region(), 0, settings_.begin),
      interpreter_(settings_.output, settings_.plan, threads_) {
  interpreter_.on_engine_closed = [this](bool complete) {
    Control& control = shared_.region().control();
    control.engine_failed.store(complete ? 0 : 1);
    control.engine_closed.fetch_add(1);
  };
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
  shared_.region().control().heartbeat.fetch_add(1, std::memory_order_relaxed);
  const std::size_t words = rings_.drain(now, dead_);
  adopt_new_threads();
  for (const std::uint32_t thread : rings_.take_ended_threads()) interpreter_.thread_ended(thread);
  return words;
}

std::size_t Session::merge_some(std::size_t budget) {
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

void Session::finish(std::uint64_t now) { interpreter_.finish(now); }

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
  if (settings_.same_namespace && !dead_) {
    std::erase_if(running_, [&](std::uint32_t thread) { return !thread_exists(settings_.pid, threads_[thread].tid); });
    for (const std::uint32_t thread : running_) read_name(thread);
    const auto is_gone = [&](std::uint32_t tid) { return !thread_exists(settings_.pid, tid); };
    rings_.release_slots(is_gone, [this](std::uint32_t slot) { shared_.discard_ring(slot); });
  }
  interpreter_.flush();
}

}  // namespace blockyard::record
