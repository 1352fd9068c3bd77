#include "replay/run/stream.hpp"

#include <ctime>
#include <utility>

#include "journal/event.hpp"
#include "replay/run/failure.hpp"
#include "replay/run/pacer.hpp"

namespace blockyard::replay {
namespace {

// Rows that are written at a time, before the rings are checked again: 0.3 MB, a quarter of a millisecond.
constexpr std::uint64_t rows_at_once = 8'192;
// The pause while the rings are well filled. A busy game's 2 million events per second take 2000 records of a ring in
// that time, and the smallest ring has 8192.
constexpr timespec rest{0, 1'000'000};

}  // namespace

Stream::Stream(Session& session, Records& records, RecordWriter* writer, std::string folder)
    : session_(session), records_(records), writer_(writer), folder_(std::move(folder)) {}

Stream::~Stream() { finish(); }

void Stream::start() { thread_.start(run, this); }

void Stream::finish() {
  last_step_.store(true, std::memory_order_release);
  thread_.join();
}

void Stream::run(void* self) {
  auto* stream = static_cast<Stream*>(self);
  try {
    stream->loop();
  } catch (const journal::Error& error) {
    abandon_run(stream->folder_.c_str(), error.what());
  }
}

void Stream::loop() {
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

// Reading comes first: a replay thread may be waiting for records, and no thread waits for rows.
bool Stream::step() {
  std::uint64_t moved = 0;
  for (ReplayThread& thread : session_.threads) {
    const std::uint64_t released =
        writer_ != nullptr ? writer_->written(thread.index) : thread.progress.done.load(std::memory_order_acquire);
    moved += records_.fill(thread, released);
  }
  if (writer_ != nullptr) moved += writer_->advance(rows_at_once);
  return moved != 0;
}

}  // namespace blockyard::replay
