// blockyard-journal: info, check, cut, convert and repeat on journals.
#include <CLI/CLI.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "journal/check.hpp"
#include "journal/command.hpp"
#include "journal/convert.hpp"
#include "journal/cut.hpp"
#include "journal/facts.hpp"
#include "journal/forms.hpp"
#include "journal/json_text.hpp"
#include "journal/repeat.hpp"

namespace {

namespace journal = blockyard::journal;
namespace command = journal::command;
using journal::Json;

struct Options {
  std::string input;
  std::string output;
  double from_s = 0;
  double to_s = -1;
  std::uint64_t times = 1;
  bool progress = false;
  std::string to;
  journal::Pace pace;
  journal::ConvertOptions convert;
};

journal::Progress progress_of(const Options& options, const char* text) {
  return command::progress_lines(options.progress, text);
}

void show(const Json& json) { command::print(journal::json_text(json)); }

void show(const journal::Outcome& outcome, const Options& options) {
  show({{"output", options.output},
        {"events", outcome.events},
        {"preamble_events", outcome.preamble_events},
        {"joined_reallocs", outcome.joined},
        {"bytes", outcome.bytes},
        {"notes", outcome.notes}});
}

void run_info(const Options& options) {
  command::print(journal::facts_json(journal::gather_facts(options.input, progress_of(options, "reading"))));
}

void run_check(const Options& options) {
  const journal::CheckResult result = journal::check(options.input, progress_of(options, "checking"));
  show({{"violations", 0},
        {"events", result.events},
        {"blocks_given", result.blocks_given},
        {"live_at_end", result.live_at_end},
        {"threads", result.threads},
        {"frame_marks", result.frame_marks},
        {"has_addresses", result.has_addresses},
        {"allocator", result.allocator},
        {"events_with_stack", result.events_with_stack},
        {"stacks", result.stacks},
        {"notes", result.notes}});
}

void run_cut(const Options& options, bool has_to) {
  journal::CutOptions cut;
  cut.from_ns = command::nanoseconds(options.from_s, "--from");
  if (has_to) cut.to_ns = command::nanoseconds(options.to_s, "--to");
  cut.overwrite = options.convert.overwrite;
  show(journal::cut(options.input, options.output, cut, progress_of(options, "cutting")), options);
}

void run_convert(Options& options) {
  if (options.to == "aosp") options.convert.to = journal::OutputForm::aosp;
  if (options.pace.events_per_s != 0 || options.pace.events_a_frame != 0) {
    if (options.convert.join_realloc) {
      throw journal::Error("--join-realloc joins by time, which --rate and --frames-of would make up; convert twice");
    }
    options.convert.pace = options.pace;
  }
  show(journal::convert(options.input, options.output, options.convert, progress_of(options, "converting")), options);
}

void run_repeat(const Options& options) {
  journal::RepeatOptions repeat;
  repeat.times = options.times;
  repeat.overwrite = options.convert.overwrite;
  show(journal::repeat(options.input, options.output, repeat, progress_of(options, "repeating")), options);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Facts about allocation journals, and other forms of them.", "blockyard-journal");
  app.require_subcommand(1);
  Options options;
  const auto common = [&options](CLI::App* command) {
    command->add_option("journal", options.input, "a .byj, a text journal, or another tool's log (plain, .zst, .gz)")
        ->required();
    command->add_flag("--json")->description("print JSON, as without it");
    command->add_flag("--progress", options.progress, "write lines 'progress FRACTION TEXT' to standard error");
  };
  const auto writes = [&options](CLI::App* command) {
    command
        ->add_option("-o,--output", options.output,
                     "where to write: .byj, or text (.txt, .journal, .log), compressed when .zst or .gz follows")
        ->required();
    command->add_flag("--force", options.convert.overwrite, "overwrite the output");
  };
  CLI::App* info = app.add_subcommand("info", "print what a journal holds");
  common(info);
  CLI::App* check = app.add_subcommand("check", "verify a journal: checksums, order, blocks, addresses, footer");
  common(check);
  CLI::App* cut = app.add_subcommand("cut", "write a stretch of a journal with its preamble");
  common(cut);
  writes(cut);
  cut->add_option("--from", options.from_s, "seconds since the journal's start")->capture_default_str();
  CLI::Option* to = cut->add_option("--to", options.to_s, "seconds since the journal's start; its end when left out");
  CLI::App* convert = app.add_subcommand("convert", "write a journal in another form");
  common(convert);
  writes(convert);
  convert->add_flag("--plain", options.convert.plain, "text: leave out the # lines that say what the form can't");
  convert->add_flag("--join-realloc", options.convert.join_realloc,
                    "a free and an allocation of the same instant and thread become one realloc");
  convert->add_flag("--anonymous", options.convert.anonymous,
                    "leave out the program, its arguments and paths, and number all names");
  std::vector<std::string> forms{"byj"};
  for (const auto& form : journal::text_forms()) forms.emplace_back(form.name);
  convert->add_option("--from", options.convert.from, "the journal's form, where its beginning does not show it")
      ->check(CLI::IsMember(forms));
  convert->add_option("--to", options.to, "another form than the output's name says")
      ->check(CLI::IsMember(std::vector<std::string>{"aosp"}));
  convert->add_option("--rate", options.pace.events_per_s, "a journal without times: so many events a second")
      ->check(CLI::Range(1e-3, 1e9));
  convert
      ->add_option("--frames-of", options.pace.events_a_frame,
                   "a journal without times: a frame mark behind so many events")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
  convert->add_flag("--addresses", options.convert.addresses, "keep the program's pointers in a .byj");
  CLI::App* repeat = app.add_subcommand("repeat", "write a journal several times over, as one long journal");
  common(repeat);
  repeat->add_option("times", options.times, "repetitions in all")->required()->check(CLI::Range(1, 1'000'000));
  writes(repeat);
  // A file that grows beyond its limit is then a failed write with a sentence, and its temporary file is removed.
  std::signal(SIGXFSZ, SIG_IGN);
  return command::run(app, argc, argv, [&] {
    if (info->parsed()) run_info(options);
    if (check->parsed()) run_check(options);
    if (cut->parsed()) run_cut(options, to->count() != 0);
    if (convert->parsed()) run_convert(options);
    if (repeat->parsed()) run_repeat(options);
  });
}
