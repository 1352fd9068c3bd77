// blockyard-names: gives names to the call stacks of a journal.
#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "journal/command.hpp"
#include "journal/json_text.hpp"
#include "names/journal_names.hpp"

namespace {

namespace command = blockyard::journal::command;
namespace names = blockyard::names;
using blockyard::journal::Json;

const char* text_of(names::Symbols symbols) {
  constexpr const char* texts[] = {"lines", "symbols", "exports", "none"};
  return texts[static_cast<std::size_t>(symbols)];
}

Json json_of(const names::Naming& naming) {
  Json modules = Json::array();
  for (const names::NamedModule& module : naming.modules) {
    modules.push_back({{"path", module.path},
                       {"build_id", module.build_id},
                       {"frames", module.frames},
                       {"named", module.named},
                       {"lines", module.lines},
                       {"symbols", text_of(module.symbols)},
                       {"problem", module.problem}});
  }
  return {{"frames", naming.frames},
          {"named", naming.named},
          {"generated", {{"frames", naming.generated_frames}, {"named", naming.generated_named}}},
          {"perf_map", naming.perf_map},
          {"modules", std::move(modules)}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Gives names to the call stacks of journals and stores them there.", "blockyard-names");
  std::vector<std::string> paths;
  std::string list;
  names::NamingOptions options;
  bool progress = false;
  bool json = false;
  auto* given = app.add_option("journal", paths, "each a .byj with call stacks");
  app.add_option("--list", list, "a file with the journals' paths, a NUL behind each; prints why some have no names")
      ->excludes(given);
  app.add_option("--debug-dir", options.resolver.debug_folders, "a folder with debug files or unstripped programs")
      ->allow_extra_args(false);
  app.add_option("--perf-map", options.perf_map, "names of just-in-time compiled code (default: /tmp/perf-PID.map)");
  app.add_flag("--debuginfod", options.resolver.ask_servers, "ask the servers that DEBUGINFOD_URLS names");
  app.add_flag("--json", json, "print JSON");
  app.add_flag("--progress", progress, "write lines 'progress FRACTION TEXT' to standard error");
  // A file that grows beyond its limit is then a failed write with a sentence, and its temporary file is removed.
  std::signal(SIGXFSZ, SIG_IGN);
  const auto name = [&] {
    const auto tell = command::progress_lines(progress, "naming functions");
    if (!list.empty()) {
      std::ifstream file(list, std::ios::binary);
      for (std::string path; std::getline(file, path, '\0');) paths.push_back(path);
      Json failures = Json::array();
      const std::vector<names::Naming> namings = names::name_journals(paths, options, tell);
      for (std::size_t i = 0; i < namings.size(); ++i) {
        if (!namings[i].error.empty()) failures.push_back(namings[i].error);
      }
      command::print(blockyard::journal::json_text(failures));
      return;
    }
    if (paths.size() != 1) throw blockyard::journal::Error("name one journal");
    const names::Naming naming = names::name_journal(paths.front(), options, tell);
    command::print(json ? blockyard::journal::json_text(json_of(naming))
                        : std::to_string(naming.named) + " of " + std::to_string(naming.frames) +
                              " addresses have names");
  };
  return command::run(app, argc, argv, name, "not enough memory for the names of this journal's call stacks");
}
