#include "journal/chunk_pipe.hpp"

namespace blockyard::journal {

namespace {
constexpr std::uint64_t worth_a_thread_bytes = 1U << 20;
}

ChunkPipe::ChunkPipe(std::unique_ptr<TextParser> parser, std::uint64_t input_bytes) : parser_(std::move(parser)) {
  if (input_bytes >= worth_a_thread_bytes) thread_ = std::thread([this] { produce(); });
}

ChunkPipe::~ChunkPipe() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  moved_.notify_all();
  thread_.join();
}

void ChunkPipe::produce() {
  try {
    for (bool last = false; !last;) {
      std::unique_lock lock(mutex_);
      moved_.wait(lock, [this] { return stop_ || produced_ - consumed_ < depth; });
      if (stop_) return;
      Chunk& chunk = chunks_[produced_ % depth];
      lock.unlock();
      parser_->next(chunk);
      last = chunk.last;
      lock.lock();
      ++produced_;
      lock.unlock();
      moved_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    moved_.notify_all();
  }
}

const Chunk& ChunkPipe::next() {
  if (!thread_.joinable()) {
    parser_->next(chunks_[0]);
    return chunks_[0];
  }
  std::unique_lock lock(mutex_);
  if (holding_) {
    ++consumed_;
    moved_.notify_all();
  }
  moved_.wait(lock, [this] { return produced_ != consumed_ || error_; });
  if (produced_ == consumed_) std::rethrow_exception(error_);
  holding_ = true;
  return chunks_[consumed_ % depth];
}

}  // namespace blockyard::journal
