#include "journal/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "journal/event.hpp"
#include "journal/last_error.hpp"

namespace blockyard::journal {
namespace {

// The file to remove, for the signal handler.
std::array<char, 4096> doomed{};

extern "C" void remove_and_die(int signal_number) {
  if (doomed[0] != '\0') ::unlink(doomed.data());
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

void doom(const std::string& path) {
  if (path.size() >= doomed.size()) return;
  std::memcpy(doomed.data(), path.c_str(), path.size() + 1);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    if (::signal(signal_number, remove_and_die) == SIG_IGN) ::signal(signal_number, SIG_IGN);  // under nohup
  }
}

class PlainSink final : public ByteSink {
 public:
  PlainSink(const std::string& path, std::string_view name) : name_(name), file_(std::fopen(path.c_str(), "wb")) {
    if (file_ == nullptr) throw Error(name_ + " can't be created: " + last_error());
  }
  ~PlainSink() override {
    if (file_ != nullptr) std::fclose(file_);
  }
  PlainSink(const PlainSink&) = delete;
  PlainSink& operator=(const PlainSink&) = delete;
  void write(std::string_view bytes) override {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail();
  }
  void finish() override {
    std::FILE* const file = file_;
    file_ = nullptr;
    if (std::fclose(file) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const { throw Error(name_ + ": writing failed: " + last_error()); }
  std::string name_;
  std::FILE* file_;
};

class ZstdSink final : public ByteSink {
 public:
  ZstdSink(const std::string& path, std::string_view name)
      : file_(path, name), stream_(ZSTD_createCCtx()), buffer_(ZSTD_CStreamOutSize()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(stream_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdSink() override { ZSTD_freeCCtx(stream_); }
  ZstdSink(const ZstdSink&) = delete;
  ZstdSink& operator=(const ZstdSink&) = delete;
  void write(std::string_view bytes) override { pump(bytes, ZSTD_e_continue); }
  void finish() override {
    pump({}, ZSTD_e_end);
    file_.finish();
  }

 private:
  void pump(std::string_view bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const std::size_t left = ZSTD_compressStream2(stream_, &out, &in, directive);
      if (ZSTD_isError(left) != 0) throw Error(std::string("compressing failed: ") + ZSTD_getErrorName(left));
      file_.write({buffer_.data(), out.pos});
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return;
    }
  }
  PlainSink file_;
  ZSTD_CCtx* stream_;
  std::vector<char> buffer_;
};

class GzipSink final : public ByteSink {
 public:
  GzipSink(const std::string& path, std::string_view name) : file_(path, name), buffer_(1U << 16) {
    constexpr int with_gzip_header = 16 + MAX_WBITS;
    constexpr int default_memory = 8;
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, with_gzip_header, default_memory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~GzipSink() override { deflateEnd(&stream_); }
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;
  void write(std::string_view bytes) override { pump(bytes, Z_NO_FLUSH); }
  void finish() override {
    pump({}, Z_FINISH);
    file_.finish();
  }

 private:
  void pump(std::string_view bytes, int flush) {
    stream_.next_in = reinterpret_cast<const Bytef*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, flush);
      file_.write({buffer_.data(), buffer_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }
  PlainSink file_;
  z_stream stream_{};
  std::vector<char> buffer_;
};

}  // namespace

OutputFile::OutputFile(const std::string& path, const std::string& input, bool overwrite) : path_(path) {
  struct stat out {};
  struct stat in {};
  const bool exists = ::stat(path.c_str(), &out) == 0;
  if (exists && ::stat(input.c_str(), &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
    throw Error(path + " is the input itself; name another file for the output");
  }
  if (exists && S_ISDIR(out.st_mode)) throw Error(path + " is a folder; name a file for the output");
  if (exists && !S_ISREG(out.st_mode)) {
    temporary_ = path;
    return;
  }
  if (exists && !overwrite) throw Error(path + " exists already; name another file, or pass --force to overwrite it");
  temporary_ = path + ".part-" + std::to_string(::getpid());
  doom(temporary_);
}

OutputFile::~OutputFile() {
  if (temporary_ != path_) ::unlink(temporary_.c_str());
  doomed[0] = '\0';
}

void OutputFile::commit() {
  if (temporary_ == path_) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw Error(path_ + " can't be put in place: " + last_error());
  }
  temporary_ = path_;
}

std::unique_ptr<ByteSink> ByteSink::create(const std::string& path, std::string_view name) {
  if (name.ends_with(".zst")) return std::make_unique<ZstdSink>(path, name);
  if (name.ends_with(".gz")) return std::make_unique<GzipSink>(path, name);
  return create_plain(path, name);
}

std::unique_ptr<ByteSink> ByteSink::create_plain(const std::string& path, std::string_view name) {
  return std::make_unique<PlainSink>(path, name);
}

}  // namespace blockyard::journal
