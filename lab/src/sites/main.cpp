// blockyard-sites: who allocates, by the call stacks of a journal.
#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "journal/command.hpp"
#include "journal/event.hpp"
#include "journal/json_text.hpp"
#include "journal/output_file.hpp"
#include "sites/analysis.hpp"
#include "sites/event_stacks.hpp"
#include "sites/export.hpp"
#include "sites/sites_json.hpp"

namespace {

namespace journal = blockyard::journal;
namespace command = journal::command;
namespace sites = blockyard::sites;

enum class Form { pprof, folded, speedscope, trace };

struct Arguments {
  std::string path;
  std::string output;
  Form form = Form::pprof;
  sites::Weight weight = sites::Weight::allocations;
  bool force = false;
  double from_s = 0;
  double to_s = 0;
  bool progress = false;
  sites::Options options;
  sites::Listing listing;
};

journal::Progress progress_of(const Arguments& arguments) {
  return command::progress_lines(arguments.progress, "reading");
}

void run_export(Arguments& arguments) {
  arguments.options.by = sites::By::stack;
  journal::OutputFile file(arguments.output, arguments.path, arguments.force);
  const auto sink = journal::ByteSink::create(file.temporary(), arguments.output);
  const journal::Progress progress = progress_of(arguments);
  if (arguments.form == Form::trace) {
    sites::write_trace(arguments.path, arguments.options, *sink, progress);
  } else {
    const sites::Sites found = sites::find_sites(arguments.path, arguments.options, progress);
    if (arguments.form == Form::pprof) sites::write_pprof(found, *sink);
    if (arguments.form == Form::folded) sites::write_folded(found, arguments.weight, *sink);
    if (arguments.form == Form::speedscope) sites::write_speedscope(found, *sink);
  }
  sink->finish();
  file.commit();
}

void run_list(const Arguments& arguments) {
  const sites::Sites found = sites::find_sites(arguments.path, arguments.options, progress_of(arguments));
  command::print(journal::json_text(sites::sites_json(found, arguments.options.by, arguments.listing)));
}

// In one pass, for those who read thousands of journals.
void print_all(const Arguments& arguments) {
  journal::FactsGatherer gatherer(arguments.path);
  const sites::Sites found = sites::find_sites(arguments.path, arguments.options, {}, &gatherer);
  const journal::Facts facts = gatherer.conclude(*found.source);
  journal::Json frames = {{"begin_ns", journal::Json::array()},
                          {"end_ns", journal::Json::array()},
                          {"events", journal::Json::array()},
                          {"allocations", journal::Json::array()}};
  // A frame lies between two marks.
  for (std::size_t i = 1; facts.marked_frames && i < facts.frames.size(); ++i) {
    frames["begin_ns"].push_back(facts.frames[i].begin_ns);
    frames["end_ns"].push_back(facts.frames[i].end_ns);
    frames["events"].push_back(facts.frames[i].events);
    frames["allocations"].push_back(facts.frames[i].allocations);
  }
  const journal::Json listing = sites::sites_json(found, arguments.options.by, {});
  command::print("{\"info\": " + journal::facts_json(facts) + ", \"frames\": " + journal::json_text(frames, -1) +
                 ", \"listing\": " + journal::json_text(listing, -1) + "}");
}

void write_events(const Arguments& arguments) {
  const sites::Stretch stretch{arguments.options.from_ns, arguments.options.to_ns};
  const journal::Json facts = {
      {"stacks", sites::write_event_stacks(arguments.path, stretch, arguments.output, progress_of(arguments))}};
  command::print(journal::json_text(facts));
}

void print_speakers(const Arguments& arguments) {
  command::print(journal::json_text(journal::Json(sites::read_speakers(arguments.path, arguments.options.skip))));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Who allocates, by the call stacks of a journal.", "blockyard-sites");
  app.require_subcommand(1);
  Arguments arguments;
  CLI::App* list = app.add_subcommand("list", "print sites as JSON");
  CLI::App* all = app.add_subcommand("all", "print the journal's facts, its frames and all its sites as JSON");
  CLI::App* write = app.add_subcommand("export", "write a form that other tools read");
  CLI::App* events = app.add_subcommand("events", "write the call stack of each event, for reports");
  CLI::App* speakers = app.add_subcommand("speakers", "print which label speaks for each stack of what 'events' wrote");
  events->add_option("-o,--output", arguments.output, "not written when the journal has no stacks")->required();
  static const std::map<std::string, Form> forms{
      {"pprof", Form::pprof}, {"folded", Form::folded}, {"speedscope", Form::speedscope}, {"trace", Form::trace}};
  static const std::map<std::string, sites::Weight> weights{{"allocations", sites::Weight::allocations},
                                                            {"bytes", sites::Weight::bytes},
                                                            {"end-blocks", sites::Weight::end_blocks},
                                                            {"end-bytes", sites::Weight::end_bytes}};
  write->add_option("--as", arguments.form)->required()->transform(CLI::CheckedTransformer(forms));
  write->add_option("--weight", arguments.weight, "folded: what counts")->transform(CLI::CheckedTransformer(weights));
  write->add_option("-o,--output", arguments.output, "compressed when it ends in .gz or .zst")->required();
  write->add_flag("--force", arguments.force, "overwrite the output");
  static const std::map<std::string, sites::By> groups{{"function", sites::By::function},
                                                       {"line", sites::By::line},
                                                       {"module", sites::By::module},
                                                       {"tag", sites::By::tag},
                                                       {"stack", sites::By::stack}};
  static const std::map<std::string, sites::Sort> sorts{
      {"allocations", sites::Sort::allocations}, {"bytes", sites::Sort::bytes},  {"frame", sites::Sort::frame},
      {"worst-frame", sites::Sort::worst_frame}, {"peak", sites::Sort::peak},    {"end", sites::Sort::end},
      {"same-frame", sites::Sort::same_frame},   {"shared", sites::Sort::shared}};
  list->add_option("--by", arguments.options.by)->transform(CLI::CheckedTransformer(groups));
  list->add_option("--sort", arguments.listing.sort)->transform(CLI::CheckedTransformer(sorts));
  list->add_option("--limit", arguments.listing.limit, "at most so many sites; 0 is all");
  list->add_option("--match", arguments.listing.match, "a regular expression for function, file, module or tag");
  speakers->add_option("file", arguments.path)->required();
  all->add_option("journal", arguments.path)->required();
  for (CLI::App* command : {list, speakers}) {
    command->add_option("--skip", arguments.options.skip, "functions that this regex matches don't stand for a stack");
  }
  list->add_flag("--wrappers", arguments.options.show_wrappers, "let operator new and the standard library speak");
  const auto given = [](const CLI::App* command, const char* option) {
    return command->get_option(option)->count() != 0;
  };
  for (CLI::App* command : {list, write}) {
    command->add_option("--through", arguments.options.through, "only stacks with a function that this regex matches");
  }
  for (CLI::App* command : {list, write, events}) {
    command->add_option("journal", arguments.path, "a journal")->required();
    command->add_option("--from", arguments.from_s, "seconds");
    command->add_option("--to", arguments.to_s, "seconds");
    command->add_flag("--progress", arguments.progress, "write lines 'progress FRACTION TEXT' to standard error");
  }
  return command::run(app, argc, argv, [&] {
    const CLI::App* chosen = app.get_subcommands().front();
    if (speakers->parsed()) return print_speakers(arguments);
    if (all->parsed()) return print_all(arguments);
    if (given(chosen, "--from")) arguments.options.from_ns = command::nanoseconds(arguments.from_s, "--from");
    if (given(chosen, "--to")) arguments.options.to_ns = command::nanoseconds(arguments.to_s, "--to");
    if (write->parsed()) run_export(arguments);
    if (events->parsed()) write_events(arguments);
    if (list->parsed()) run_list(arguments);
  });
}
