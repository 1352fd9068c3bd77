// Parses ahead on a thread of its own, so that decompression and parsing overlap with the reader's work.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "journal/text_parser.hpp"

namespace blockyard::journal {

/// Hands out a parser's chunks in order. Parses small inputs on the caller's thread: another thread would cost more.
class ChunkPipe {
 public:
  ChunkPipe(std::unique_ptr<TextParser> parser, std::uint64_t input_bytes);
  ~ChunkPipe();
  ChunkPipe(const ChunkPipe&) = delete;
  ChunkPipe& operator=(const ChunkPipe&) = delete;

  /// The next chunk, valid until the next call. Do not call it after the last chunk. Throws the parser's Error in its
  /// turn, after all chunks that were parsed before it.
  const Chunk& next();

 private:
  static constexpr std::size_t depth = 4;
  void produce();

  std::unique_ptr<TextParser> parser_;
  std::array<Chunk, depth> chunks_;
  std::size_t produced_ = 0;
  std::size_t consumed_ = 0;
  bool holding_ = false;  ///< the caller still uses chunk `consumed_`
  bool stop_ = false;
  std::exception_ptr error_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::thread thread_;
};

}  // namespace blockyard::journal
