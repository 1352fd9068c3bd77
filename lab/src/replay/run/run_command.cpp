// blockyard-replay run: the command line of one run.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "journal/event.hpp"
#include "replay/cli.hpp"
#include "replay/run/run.hpp"

namespace blockyard::replay {
namespace {

// "1", "10x", "0.5", "max".
double parse_pace(const std::string& text) {
  if (text == "max") return 0;
  char* end = nullptr;
  const double pace = std::strtod(text.c_str(), &end);
  const std::string rest = end;
  if (end == text.c_str() || (!rest.empty() && rest != "x") || !(pace >= 0.001 && pace <= 1e6)) {
    throw journal::Error("--pace must be 'max' or a factor from 0.001 to 1000000, such as 1 or 10, and not '" + text +
                         "'");
  }
  return pace;
}

// The adapter that drives any library lies beside this program, or in the build tree's folder of adapters.
std::string foreign_adapter() {
  constexpr const char* name = "blockyard-adapter-foreign.so";
  std::error_code reason;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", reason).parent_path();
  for (const std::filesystem::path& candidate : {folder / name, folder / "../../adapters" / name}) {
    if (std::filesystem::exists(candidate, reason)) return candidate.lexically_normal().string();
  }
  throw journal::Error(std::string("--foreign needs ") + name + ", which is not here; name it with --adapter");
}

void check(RunSettings& settings, const std::string& pace) {
  settings.pace = parse_pace(pace);
  if (!settings.foreign.empty()) {
    std::error_code reason;
    if (!std::filesystem::is_regular_file(settings.foreign, reason))
      throw journal::Error("there is no library " + settings.foreign);
    settings.foreign = std::filesystem::absolute(settings.foreign).string();
    setenv("BLOCKYARD_ALLOCATOR_LIBRARY", settings.foreign.c_str(), 1);
    if (settings.adapter.empty()) settings.adapter = foreign_adapter();
  }
  if (settings.adapter.empty()) throw journal::Error("name an allocator with --adapter or --foreign");
  if (settings.allocator.empty()) {
    settings.allocator =
        std::filesystem::path(settings.foreign.empty() ? settings.adapter : settings.foreign).stem().string();
  }
  if (settings.journal.empty()) settings.journal = std::filesystem::path(settings.plan).stem().string();
}

}  // namespace

void add_run_command(CLI::App& app, std::function<void()>& chosen) {
  auto settings = std::make_shared<RunSettings>();
  auto pace = std::make_shared<std::string>("1");
  CLI::App* command = app.add_subcommand("run", "replay a plan on one allocator and write what its calls took");
  command->footer("Example: blockyard-replay run game.plan --adapter blockyard-adapter-glibc.so -o results");
  command->add_option("plan", settings->plan, "what 'blockyard-replay plan' wrote")->required();
  command->add_option("-o,--output", settings->output, "folder for run.json and what was measured")->required();
  command->add_option("--adapter", settings->adapter, "the allocator's adapter");
  command->add_option("--foreign", settings->foreign, "a shared object that exports malloc and free");
  command->add_option("--pace", *pace, "1: the journal's own; 10: ten times as fast; max: as fast as possible")
      ->capture_default_str();
  const std::map<std::string, Touch> touches{
      {"none", Touch::nothing}, {"first", Touch::first}, {"page", Touch::page}, {"all", Touch::all}};
  command
      ->add_option("--touch", settings->touch,
                   "what to write into a fresh block: nothing, its first byte, a byte in every page, or all of it")
      ->transform(CLI::Transformer(touches).description("none|first|page|all"))
      ->default_str("page");
#define COUNT(member, option, standard, most, unit, text) \
  command->add_option(option, settings->member, text)     \
      ->check(CLI::Range(static_cast<decltype(settings->member)>(0), static_cast<decltype(settings->member)>(most)));
#define AMOUNT COUNT
#define SWITCH(member, option, text) command->add_flag(option, settings->member, text);
#include "replay/run/run_options.def"
#undef COUNT
#undef AMOUNT
#undef SWITCH
  const std::map<std::string, CauseSource> sources{{"perf", CauseSource::perf}, {"getrusage", CauseSource::getrusage}};
  command->add_option("--look-with", settings->cause_source, "the best source of causes that may be used")
      ->transform(CLI::Transformer(sources).description("perf|getrusage"))
      ->default_str("perf");
  CLI::Option* untimed = command->add_flag(
      "--untimed", settings->untimed, "no clock around calls, one around each burst of them: bursts.npy, for totals");
  command
      ->add_flag("--verify", settings->verify,
                 "check the allocator for overlapping blocks, lost contents and lost alignment; nothing is timed")
      ->excludes(untimed);
  command
      ->add_flag("--trace", settings->traced,
                 "record which event makes which system calls (syscalls.npy); nothing is timed")
      ->excludes("--verify")
      ->excludes("--keep-awake")
      ->excludes(untimed);
  command->add_flag("--populate", settings->populate,
                    "the prefaulted variant: memory for the journal's peak populated beforehand");
  command->add_option("--options", settings->options, "key=value,key=value for the adapter");
  command->add_option("--patience", settings->patience_s, "seconds without progress after which the allocator hangs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--journal", settings->journal, "the journal's name in run.json");
  command->add_option("--allocator", settings->allocator, "the allocator's name in run.json and in messages");
  command->add_option("--variant", settings->variant, "the variant's name in run.json")->capture_default_str();
  command->add_option("--repeat", settings->repeat, "the repeat's number in run.json")->capture_default_str();
  command->add_flag("--progress", settings->progress, "write lines 'progress FRACTION TEXT' to standard error");
  command->callback([settings, pace, &chosen] {
    chosen = [settings, pace] {
      check(*settings, *pace);
      run(*settings);
    };
  });
}

}  // namespace blockyard::replay
