// blockyard-collect: the recorder's other half, started by `blockyard record` or by by_journal_open().
#include <bit>
#include <csignal>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "journal/command.hpp"
#include "record/linux/collect/server.hpp"

namespace {

std::string power_of_two(const std::string& number) {
  return std::has_single_bit(std::stoull(number)) ? "" : number + " is no power of two";
}

// The collector must outlive whatever ends the program, including Ctrl-C at the terminal. A journal that grows beyond
// the limit on a file's size is a failed write, which the summary reports.
void ignore_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTTOU, SIGXFSZ}) std::signal(number, SIG_IGN);
}

// A recorded process takes three files, a forked child that has recorded nothing one; most shells allow 1,024.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// When a program starts it, it must not keep the program's files open.
void let_go_of_inherited_files(int keep) {
  if (keep > 3) syscall(SYS_close_range, 3, keep - 1, 0);
  syscall(SYS_close_range, keep + 1, ~0U, 0);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nowhere, STDIN_FILENO);
  dup2(nowhere, STDOUT_FILENO);
}

}  // namespace

int main(int argc, char** argv) {
  blockyard::record::ServerSettings settings;
  double after = 0;
  double length = 0;
  std::uint64_t ring_kib = 4096;
  CLI::App app("Collects the events of recorded programs into journals. Started by `blockyard record`.");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  auto* listen =
      app.add_option("--socket", settings.socket, "Path of the socket to listen at, and name of an abstract one");
  app.add_option("--connected", settings.connected, "A socket, by number, at which one program waits")
      ->excludes(listen);
  app.add_option("--output", settings.output, "Journal of the first process");
  app.add_flag("--overwrite", settings.overwrite, "Replace journals that exist");
  app.add_flag("--addresses", settings.addresses, "Keep the program's own addresses");
  auto* after_option = app.add_option("--after", after, "Seconds until the window opens");
  auto* length_option = app.add_option("--for", length, "Seconds that the window stays open");
  app.add_option("--signal", settings.signal, "Number of the signal that opens and closes the window");
  app.add_flag("--wait", settings.wait, "Open no window before the signal or by_journal_start()");
  app.add_option("--ring-kib", ring_kib, "Size of a thread's ring in KiB, a power of two")
      ->check(CLI::Range(64, 1 << 20))
      ->check(power_of_two);
  app.add_option("--stack-depth", settings.stack_depth, "Most frames of a stack; 0: no stacks")
      ->check(CLI::Range(0, 4096));
  app.add_flag("--verify-stacks", settings.verify_stacks, "Walk each stack a second time with libunwind");
  app.add_option("--children", settings.children, "'no', or the file name of the programs to record beside the first");
  app.add_option("--slots", settings.slots, "Most threads at a time")->check(CLI::Range(1, 1 << 14));
  const auto collect = [&] {
    if (*after_option) settings.after = after;
    if (*length_option) settings.length = length;
    settings.ring_words = ring_kib * 1024 / sizeof(std::uint64_t);
    ignore_signals();
    allow_many_files();
    if (settings.connected >= 0) let_go_of_inherited_files(settings.connected);
    blockyard::record::Server server(settings);
    std::puts("ready");
    std::fflush(stdout);
    server.run();
  };
  return blockyard::journal::command::run(app, argc, argv, collect, "not enough memory to collect the recording");
}
