// blockyard-follow: what a program does while its journal is being written, as lines of JSON.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/byj_reader.hpp"
#include "journal/command.hpp"
#include "live/counts.hpp"
#include "live/names.hpp"
#include "live/report.hpp"

namespace {

namespace command = blockyard::journal::command;
using blockyard::journal::ByjSource;
using blockyard::journal::Error;
using blockyard::journal::Json;
using Clock = std::chrono::steady_clock;

constexpr int look_ms = 50;

/// Whether somebody has the file open for writing: only then the system refuses a lease for reading it. A file system
/// without leases, or another user's file, may be written.
bool is_written(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  const bool refused = ::fcntl(file, F_SETLEASE, F_RDLCK) != 0;
  ::close(file);  // and with it the lease
  return refused;
}

/// Lines of standard input, which come while the journal is read. Its end is the end of the view.
class Questions {
 public:
  /// Waits at most so long. False when no more will come.
  bool wait(int ms) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, ms) <= 0) return true;
    char bytes[4096];
    const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    text_.append(bytes, static_cast<std::size_t>(got));
    return got != 0;
  }
  bool take(std::string& line) {
    const std::size_t end = text_.find('\n');
    if (end == std::string::npos) return false;
    line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return true;
  }

 private:
  std::string text_;
};

struct Settings {
  std::string path;
  double every_s = 1;
  double fps = 60;
  std::size_t limit = 30;
  bool stay = false;
};

class Follower {
 public:
  explicit Follower(const Settings& settings)
      : settings_(settings),
        budget_ns_(static_cast<std::uint64_t>(1e9 / settings.fps)),
        every_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings.every_s))),
        counts_(budget_ns_) {}

  void run() {
    if (!open()) return;
    while (!is_over_) {
      // What was written before the writer let go of the file is read after that was seen.
      is_complete_ = !read() && (source_->has_ended() || (!is_written(settings_.path) && !read()));
      is_over_ = is_complete_ && !names_are_missing();
      const auto silent = Clock::now() - told_;
      // A line comes with what was flushed, or when nothing was for longer than a flush may take.
      if (is_over_ || (is_fresh_ && silent >= every_ * 9 / 10) || silent >= every_ * 3 / 2) tell();
      if (!answer(look_ms)) return;
    }
    // The view goes on to look at what was.
    while (settings_.stay && answer(look_ms)) {
      if (names_came() || Clock::now() - told_ >= every_ * 3 / 2) tell();
    }
  }

 private:
  /// False when nobody wants to know any more.
  bool open() {
    for (;;) {
      const bool exists = ::access(settings_.path.c_str(), F_OK) == 0;
      const bool may_be_begun = !exists || is_written(settings_.path);
      try {
        if (exists) {
          source_ = std::make_unique<ByjSource>(settings_.path, blockyard::journal::AtDamage::end);
          source_->follow();
          report_.emplace(*source_, counts_, budget_ns_, settings_.limit);
          return true;
        }
      } catch (const Error&) {
        if (!may_be_begun) throw;
      }
      if (!questions_.wait(look_ms)) return false;
    }
  }

  /// Takes what was written, for a moment at most. Whether there was anything.
  bool read() {
    const auto end = Clock::now() + std::chrono::milliseconds(4 * look_ms);
    source_->grow();
    bool any = false;
    for (auto events = source_->next(); !events.empty(); events = source_->next()) {
      constexpr std::size_t ahead = 32;
      counts_.set_preamble(source_->header().preamble_events);
      for (std::size_t i = 0; i < events.size(); ++i) {
        if (i + ahead < events.size()) counts_.prefetch(events[i + ahead]);
        if (i + ahead / 2 < events.size()) counts_.prefetch_ended(events[i + ahead / 2]);
        counts_.add(events[i]);
      }
      any = true;
      if (Clock::now() >= end) break;
    }
    is_fresh_ |= any;
    // The least delay between an event and its arrival is nearest to what lies between the two clocks.
    if (any) behind_ = std::min(behind_, now_ns() - static_cast<std::int64_t>(counts_.time_ns()));
    return any;
  }

  bool names_came() {
    const bool came = names_.exchange(source_->nameable_stacks(), is_complete_);
    if (came) report_->names_came();
    return came;
  }
  bool names_are_missing() {
    names_came();
    return !names_.is_idle();
  }

  void tell() {
    names_came();
    Json line = report_->line();
    line["ended"] = is_over_;
    if (!source_->damage().empty()) line["damage"] = source_->damage();
    command::print(blockyard::journal::json_text(line, -1));
    counts_.end_window(is_complete_);  // the last lines show what came last
    is_fresh_ = false;
    told_ = Clock::now();
  }

  /// Answers what is asked within so long. False when nobody will ask any more.
  bool answer(int ms) {
    const bool more = questions_.wait(ms);
    for (std::string line; questions_.take(line);) {
      const std::size_t blank = line.find(' ');
      const std::uint64_t number = blank == std::string::npos ? 0 : std::strtoull(&line[blank], nullptr, 10);
      const std::string what = line.substr(0, blank);
      if (what == "mark") {
        counts_.mark(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ns() - behind_)));
      } else if (what == "frame") {
        command::print(blockyard::journal::json_text(report_->frame(number), -1));
      } else if (what == "stacks") {
        command::print(blockyard::journal::json_text(report_->stacks(static_cast<std::uint32_t>(number)), -1));
      }
    }
    return more;
  }

  static std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
  }

  Settings settings_;
  std::uint64_t budget_ns_;
  Clock::duration every_;
  blockyard::live::Counts counts_;
  std::unique_ptr<ByjSource> source_;
  std::optional<blockyard::live::Report> report_;
  blockyard::live::Names names_;
  Questions questions_;
  Clock::time_point told_ = Clock::now();
  std::int64_t behind_ = std::numeric_limits<std::int64_t>::max();
  bool is_fresh_ = false;
  bool is_complete_ = false;
  bool is_over_ = false;  ///< and nothing is left to be said without being asked
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a program does while its journal is being written: a line of JSON about each second.",
               "blockyard-follow");
  Settings settings;
  app.add_option("journal", settings.path, "a .byj, which need not be there yet")->required();
  app.add_option("--every", settings.every_s, "seconds between two lines")->check(CLI::Range(0.05, 3600.0));
  app.add_option("--fps", settings.fps, "frames per second that the program wants")->check(CLI::Range(1.0, 10'000.0));
  app.add_option("--limit", settings.limit, "most sites in a list")->check(CLI::Range(1, 10'000));
  app.add_flag("--stay", settings.stay, "answer questions when the journal has ended, until standard input ends");
  // Whoever opens the file for writing while we ask whether somebody does makes the system send this.
  std::signal(SIGIO, SIG_IGN);
  const int code = command::run(app, argc, argv, [&] { Follower(settings).run(); });
  // A module whose names nobody waits for may still be read.
  std::fflush(nullptr);
  std::_Exit(code);
}
