// blockyard-replay plan: a journal in, a plan, pairs.npy, frames.npy and facts out.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "journal/command.hpp"
#include "journal/json_text.hpp"
#include "journal/reader.hpp"
#include "replay/cli.hpp"
#include "replay/plan/planner.hpp"
#include "replay/plan/route_review.hpp"
#include "replay/results/npy.hpp"
#include "replay/results/run_json.hpp"

namespace blockyard::replay {
namespace {

struct Settings {
  std::string journal;
  std::string plan;
  std::string events_folder;
  std::string threads = "journal";
  std::string routes;
  std::vector<std::uint32_t> groups;
  PlanOptions options;
  bool progress = false;
};

void check_times(const PlanOptions& options) {
  for (const auto& [time, name] : {std::pair{options.from_s, "--from"}, std::pair{options.to_s, "--to"}}) {
    if (time) static_cast<void>(journal::command::nanoseconds(*time, name));
  }
  if (options.to_s && *options.to_s <= options.from_s.value_or(0))
    throw journal::Error("--to must be later than --from");
}

/// The journal is read `passes` times.
class Progress {
 public:
  Progress(bool shown, int passes) : lines_(journal::command::progress_lines(shown, "planning")), passes_(passes) {}
  void show(const journal::Source& source) {
    journal::report(lines_ ? [this](double part) { lines_((pass_ + part) / passes_); } : journal::Progress(), source);
  }
  void next_pass() { ++pass_; }

 private:
  journal::Progress lines_;
  int passes_;
  int pass_ = 0;
};

void write_events(const std::string& folder, const Planner& planner) {
  make_folder(folder);
  write_npy(folder + "/pairs.npy", "'<u4'", planner.pair());
  static_assert(sizeof(FrameMark) == 16, "frames.npy is these bytes");
  write_npy(folder + "/frames.npy", "[('time', '<u8'), ('event', '<u4'), ('thread', '<u4')]",
            std::span(planner.frames()));
}

journal::Json phases_json(const Planner& planner, const journal::Header& header) {
  auto json = journal::Json::array();
  for (const PhaseMark& phase : planner.phases()) {
    json.push_back({{"name", phase.name < header.names.size() ? header.names[phase.name] : ""},
                    {"time_ns", phase.time_ns},
                    {"event", phase.event}});
  }
  return json;
}

journal::Json routes_json(const std::vector<PlanRoute>& routes) {
  auto json = journal::Json::array();
  for (const PlanRoute& route : routes) json.push_back(route_json(route));
  return json;
}

void print_facts(const PlanFacts& facts, const Planner& planner, const journal::Source& source) {
  const PlanHeader& plan = facts.header;
  journal::Json json = {
      {"events", plan.events},
      {"measured_events", plan.measured_events},
      {"first_event", facts.first_event},
      {"blocks", plan.blocks},
      {"preamble_blocks", plan.preamble_blocks},
      {"preamble_bytes", plan.preamble_bytes},
      {"peak_bytes", plan.peak_bytes},
      {"peak_blocks", plan.peak_blocks},
      {"largest_bytes", facts.largest_bytes},
      {"pool_bytes", plan.pool_bytes},
      {"threads", plan.threads},
      {"idle_threads", facts.idle_threads},
      {"remote_frees", facts.remote_frees},
      {"waits", facts.waits},
      {"frames", plan.frames},
      {"origin_s", static_cast<double>(plan.origin_ns) / 1e9},
      {"duration_s", static_cast<double>(plan.duration_ns) / 1e9},
      {"paced", (plan.flags & plan_paced) != 0},
      {"slots", plan.slots},
      {"plan_bytes", plan.file_bytes},
      {"program", source.header().program},
      {"allocator", source.header().allocator},
      {"notes", source.notes()},
      {"unseen", source.header().unseen},
      {"cut_at_end", source.header().cut_at_end},
      {"stacks", !source.stacks().empty()},
      {"phases", phases_json(planner, source.header())},
  };
  if (!planner.routes().empty()) json["routes"] = routes_json(planner.routes());
  json["thread_names"] = journal::Json::array();
  for (const journal::Thread& thread : source.header().threads) json["thread_names"].push_back(thread.name);
  journal::command::print(journal::json_text(json));
}

/// Gives `reader` the journal's events until it wants no more.
template <typename Reader>
void read_into(Reader& reader, journal::Source& source, Progress& progress) {
  for (;;) {
    const std::span<const journal::Event> events = source.next();
    if (events.empty() || !reader.add(events, source.header().preamble_events)) break;
    progress.show(source);
  }
}

// The routes of the groups asked for: the others keep their numbers and get no blocks.
journal::Routes read_chosen(const Settings& settings) {
  journal::Routes routes = journal::read_routes(settings.routes);
  if (settings.groups.empty()) return routes;
  const std::set<std::uint32_t> chosen(settings.groups.begin(), settings.groups.end());
  for (const std::uint32_t group : chosen) {
    if (std::none_of(routes.routes.begin(), routes.routes.end(), [&](const auto& one) { return one.group == group; })) {
      throw journal::Error(settings.routes + " has no group " + std::to_string(group));
    }
  }
  std::erase_if(routes.blocks,
                [&](const journal::RoutedBlock& block) { return chosen.count(routes.routes[block.route].group) == 0; });
  return routes;
}

Reroutes review(const Settings& settings, Progress& progress) {
  const PlanOptions& options = settings.options;
  RouteReview review(read_chosen(settings), settings.routes, options.from_s, options.to_s);
  read_into(review, *journal::open(settings.journal), progress);
  progress.next_pass();
  return review.finish();
}

void make_plan(const Settings& settings) {
  check_times(settings.options);
  const bool rerouted = !settings.routes.empty();
  if (rerouted && settings.options.one_thread) {
    throw journal::Error("--routes and --threads one exclude each other: temp memory belongs to one thread");
  }
  Progress progress(settings.progress, rerouted ? 2 : 1);
  Reroutes reroutes;
  if (rerouted) reroutes = review(settings, progress);
  const std::unique_ptr<journal::Source> source = journal::open(settings.journal);
  Planner planner(settings.plan, settings.options, std::move(reroutes));
  read_into(planner, *source, progress);
  const PlanFacts facts = planner.finish(source->header().paced);
  if (!settings.events_folder.empty()) write_events(settings.events_folder, planner);
  print_facts(facts, planner, *source);
}

}  // namespace

void add_plan_command(CLI::App& app, std::function<void()>& chosen) {
  auto settings = std::make_shared<Settings>();
  CLI::App* command = app.add_subcommand("plan", "lay a journal, or a stretch of one, out for replaying");
  command->footer("Example: blockyard-replay plan game.byj -o game.plan --from 60 --to 68");
  command
      ->add_option("journal", settings->journal, "a .byj, a text journal (plain, .zst, .gz) or a heaptrack recording")
      ->required();
  command->add_option("-o,--output", settings->plan, "the plan's file")->required();
  command->add_option(
      "--from", settings->options.from_s,
      "seconds of the journal at which the stretch begins; blocks alive by then are restored, not measured");
  command->add_option("--to", settings->options.to_s, "seconds of the journal at which it ends");
  command->add_option("--threads", settings->threads, "replay on the threads that the journal names, or all on one")
      ->check(CLI::IsMember({"journal", "one"}))
      ->capture_default_str();
  command->add_option("--routes", settings->routes,
                      "replay the blocks that this file of 'blockyard advise' lists on the library's own allocators");
  command->add_option("--groups", settings->groups, "of the routes, those of these groups alone")
      ->delimiter(',')
      ->needs("--routes");
  command->add_option("--events-dir", settings->events_folder,
                      "also write pairs.npy there, which events belong together, and frames.npy, the frame marks");
  command->add_flag("--progress", settings->progress, "write lines 'progress FRACTION TEXT' to standard error");
  command->callback([settings, &chosen] {
    settings->options.one_thread = settings->threads == "one";
    chosen = [settings] { make_plan(*settings); };
  });
}

}  // namespace blockyard::replay
