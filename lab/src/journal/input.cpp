#include "journal/input.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define ZLIB_CONST  // its input pointer is const then
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "journal/event.hpp"
#include "journal/last_error.hpp"

namespace blockyard::journal {
namespace {

constexpr std::size_t buffer_bytes = 1U << 18;

class PlainInput final : public Input {
 public:
  explicit PlainInput(const std::string& path) : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw Error(path + " can't be opened: " + last_error());
    struct stat facts {};
    if (::fstat(file_, &facts) == 0 && S_ISREG(facts.st_mode)) size_ = static_cast<std::uint64_t>(facts.st_size);
    ::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  ~PlainInput() override { ::close(file_); }
  PlainInput(const PlainInput&) = delete;
  PlainInput& operator=(const PlainInput&) = delete;

  std::uint64_t bytes_read() const override { return done_; }
  std::uint64_t bytes_total() const override { return size_; }

 private:
  std::size_t read_on(std::span<char> into) override {
    for (;;) {
      const ssize_t got = ::read(file_, into.data(), into.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error(path_ + " can't be read: " + last_error());
      done_ += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
  }

  std::string path_;
  int file_;
  std::uint64_t size_ = 0;
  std::uint64_t done_ = 0;
};

/// What the two decompressors share: a file and a buffer of its compressed bytes.
class CompressedInput : public Input {
 public:
  CompressedInput(std::unique_ptr<Input> file, const std::string& path)
      : path_(path), file_(std::move(file)), buffer_(buffer_bytes) {}
  std::uint64_t bytes_read() const override { return file_->bytes_read(); }
  std::uint64_t bytes_total() const override { return file_->bytes_total(); }
  void accept_cut() override { accepts_cut_ = true; }
  bool is_cut() const override { return is_cut_; }

 protected:
  std::size_t refill() { return file_->read(buffer_); }
  const std::vector<char>& buffer() const { return buffer_; }
  void end_cut() {
    is_cut_ = true;
    if (accepts_cut_) return;
    throw Error(path_ + ", byte " + std::to_string(bytes_read()) +
                ": the compressed stream ends too early (the file was cut short)");
  }
  [[noreturn]] void fail_damaged(const char* why) const {
    throw Error(path_ + ", near byte " + std::to_string(bytes_read()) + ": the compressed stream is damaged (" + why +
                ")");
  }

 private:
  std::string path_;
  std::unique_ptr<Input> file_;
  std::vector<char> buffer_;
  bool accepts_cut_ = false;
  bool is_cut_ = false;
};

class ZstdInput final : public CompressedInput {
 public:
  ZstdInput(std::unique_ptr<Input> file, const std::string& path)
      : CompressedInput(std::move(file), path), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, most_window_log);
  }
  ~ZstdInput() override { ZSTD_freeDStream(stream_); }
  ZstdInput(const ZstdInput&) = delete;
  ZstdInput& operator=(const ZstdInput&) = delete;

 private:
  std::size_t read_on(std::span<char> into) override {
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    while (out.pos == 0) {
      // A full output buffer may have left decoded bytes inside the stream: get them before reading more.
      if (in_.pos == in_.size && !may_hold_more_) {
        in_ = {buffer().data(), refill(), 0};
        if (in_.size == 0) {
          if (inside_frame_) end_cut();
          return 0;
        }
      }
      const std::size_t result = ZSTD_decompressStream(stream_, &out, &in_);
      if (ZSTD_isError(result) != 0) fail_damaged(ZSTD_getErrorName(result));
      inside_frame_ = result != 0;
      may_hold_more_ = out.pos == out.size && inside_frame_;
    }
    return out.pos;
  }

  static constexpr int most_window_log = 27;  // 128 MiB: what `zstd --long` writes
  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool inside_frame_ = false;
  bool may_hold_more_ = false;
};

class GzipInput final : public CompressedInput {
 public:
  GzipInput(std::unique_ptr<Input> file, const std::string& path) : CompressedInput(std::move(file), path) {
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~GzipInput() override { inflateEnd(&stream_); }
  GzipInput(const GzipInput&) = delete;
  GzipInput& operator=(const GzipInput&) = delete;

 private:
  std::size_t read_on(std::span<char> into) override {
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(into.size());
    while (stream_.avail_out == into.size()) {
      if (stream_.avail_in == 0) {
        stream_.next_in = reinterpret_cast<const Bytef*>(buffer().data());
        stream_.avail_in = static_cast<uInt>(refill());
        if (stream_.avail_in == 0) {
          if (inside_member_) end_cut();
          return 0;
        }
      }
      inside_member_ = true;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        inside_member_ = false;  // a gzip file may consist of several members
        inflateReset(&stream_);
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        fail_damaged(stream_.msg != nullptr ? stream_.msg : "not gzip");
      }
    }
    return into.size() - stream_.avail_out;
  }

  z_stream stream_{};
  bool inside_member_ = false;
};

}  // namespace

std::size_t Input::read(std::span<char> into) {
  if (ahead_.empty()) return read_on(into);
  const std::size_t bytes = std::min(into.size(), ahead_.size());
  std::memcpy(into.data(), ahead_.data(), bytes);
  ahead_.erase(0, bytes);
  return bytes;
}

std::string_view Input::peek(std::size_t size) {
  while (ahead_.size() < size) {
    const std::size_t had = ahead_.size();
    ahead_.resize(size);
    const std::size_t got = read_on({ahead_.data() + had, size - had});
    ahead_.resize(had + got);
    if (got == 0) break;
  }
  return std::string_view(ahead_).substr(0, size);
}

std::unique_ptr<Input> open_input(const std::string& path) {
  std::unique_ptr<Input> file = std::make_unique<PlainInput>(path);
  const std::string_view first = file->peek(4);
  if (first.empty()) throw Error(path + " is empty: 0 bytes are no journal");
  using std::string_view_literals::operator""sv;
  if (first == "\x28\xB5\x2F\xFD"sv) return std::make_unique<ZstdInput>(std::move(file), path);
  if (first.starts_with("\x1F\x8B"sv)) return std::make_unique<GzipInput>(std::move(file), path);
  return file;
}

}  // namespace blockyard::journal
