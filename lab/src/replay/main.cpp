// blockyard-replay: plans a journal, and replays a plan on one allocator.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

#include "journal/command.hpp"
#include "replay/cli.hpp"

namespace {

namespace command = blockyard::journal::command;

// Makes room for allocators that use initial-exec thread-local storage and are loaded late (jemalloc, scudo). glibc
// reads its tunables only when a process starts, so this process starts again where the room is missing.
void ensure_static_tls_room(char** argv) {
  constexpr const char* tunable = "glibc.rtld.optional_static_tls=20000";
  const char* set = std::getenv("GLIBC_TUNABLES");
  std::string tunables = set == nullptr ? "" : set;
  if (tunables.find("glibc.rtld.optional_static_tls") != std::string::npos) return;
  if (!tunables.empty()) tunables += ':';
  setenv("GLIBC_TUNABLES", (tunables + tunable).c_str(), 1);
  execv("/proc/self/exe", argv);  // where that fails, most allocators still work
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Replays allocation journals, one allocator and one process at a time.", "blockyard-replay");
  app.require_subcommand(1);
  std::function<void()> chosen;
  blockyard::replay::add_plan_command(app, chosen);
  blockyard::replay::add_run_command(app, chosen);
  // A file that grows beyond its limit is then a failed write with a sentence, and the unfinished file is removed.
  std::signal(SIGXFSZ, SIG_IGN);
  const auto carry_out = [&] {
    if (app.got_subcommand("run")) ensure_static_tls_room(argv);
    chosen();
  };
  return command::run(app, argc, argv, carry_out,
                      "not enough memory for this journal; replay a stretch of it with --from and --to");
}
