#include "replay/run/stream.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <utility>

#include "journal/event.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/pacer.hpp"

namespace blockyard::replay {
namespace {

constexpr std::size_t stack_bytes = std::size_t{2} << 20;
constexpr std::size_t stack_populated = std::size_t{128} << 10;
// Rows that are written in one go, between two looks at the rings: 0.3 MB, a quarter of a millisecond.
constexpr std::uint64_t rows_at_once = 8'192;
// While the rings are well filled. A busy game's 2 million events a second take 2000 records of a ring in that time,
// and the least ring has 8192.
constexpr timespec rest{0, 1'000'000};

}  // namespace

Stream::Stream(Session& session, Records& records, SampleWriter* samples, std::string folder)
    : session_(session),
      records_(records),
      samples_(samples),
      folder_(std::move(folder)),
      stack_(stack_bytes, stack_populated) {}

Stream::~Stream() { finish(); }

void Stream::start() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack_.begin(), stack_.size());
  const int failed = pthread_create(&thread_, &attributes, run, this);
  pthread_attr_destroy(&attributes);
  if (failed != 0) throw journal::Error(std::string("the system refuses a thread: ") + std::strerror(failed));
  started_ = true;
}

void Stream::finish() {
  if (!started_) return;
  started_ = false;
  last_step_.store(true, std::memory_order_release);
  pthread_join(thread_, nullptr);
}

std::uint64_t Stream::cpu_ns() const {
  clockid_t clock{};
  timespec time{};
  if (!started_ || pthread_getcpuclockid(thread_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

void* Stream::run(void* self) {
  auto* stream = static_cast<Stream*>(self);
  try {
    stream->loop();
  } catch (const journal::Error& error) {
    abandon_run(stream->folder_.c_str(), error.what());
  }
  return nullptr;
}

void Stream::loop() {
  const sched_param parameters{};
  sched_setscheduler(0, SCHED_BATCH, &parameters);
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
  sleep_precisely();
  // Before the clock runs, progress counts blocks of the preamble.
  while (session_.phase.load(std::memory_order_acquire) < Phase::running && !last_step_.load())
    nanosleep(&rest, nullptr);
  for (;;) {
    const bool last = last_step_.load(std::memory_order_acquire);
    const bool moved = step();
    if (last && !moved) return;
    bool low = false;
    for (const ReplayThread& thread : session_.threads) low = low || records_.runs_low(thread);
    if (!low || !moved) nanosleep(&rest, nullptr);
  }
}

// Reading comes first: a replay thread may be waiting for it, and nobody waits for rows.
bool Stream::step() {
  std::uint64_t moved = 0;
  for (ReplayThread& thread : session_.threads) {
    const std::uint64_t released =
        samples_ != nullptr ? samples_->written(thread.index) : thread.progress.done.load(std::memory_order_acquire);
    moved += records_.fill(thread, released);
  }
  if (samples_ != nullptr) moved += samples_->advance(rows_at_once);
  return moved != 0;
}

}  // namespace blockyard::replay
