// blockyard-advise: what to change at which sites, by the call stacks and frames of a journal.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "advise/advise.hpp"
#include "journal/command.hpp"
#include "journal/event.hpp"
#include "journal/json_text.hpp"

namespace {

namespace advise = blockyard::advise;
namespace journal = blockyard::journal;
namespace command = journal::command;

/// SITE=KIND. A site may contain '='.
advise::Wish wish_of(const std::string& text) {
  const std::size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) throw journal::Error("--apply wants SITE=KIND, and got '" + text + "'");
  const std::string kind = text.substr(at + 1);
  const auto known = std::find(advise::what_names.begin(), advise::what_names.end(), kind);
  if (known == advise::what_names.end() || known == advise::what_names.begin()) {
    std::string kinds;
    for (auto one = advise::what_names.begin() + 1; one != advise::what_names.end(); ++one) {
      kinds += std::string(kinds.empty() ? "" : ", ") + std::string(*one);
    }
    throw journal::Error("--apply can't make '" + text.substr(0, at) + "' a '" + kind + "'; there are " + kinds);
  }
  return {text.substr(0, at), static_cast<advise::What>(known - advise::what_names.begin())};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What to change at which sites, by the call stacks and frames of a journal.", "blockyard-advise");
  advise::Options options;
  std::vector<std::string> wishes;
  bool progress = false;
  app.add_option("journal", options.path, "a journal with call stacks")->required();
  app.add_option("--on", options.on, "another recording of the program, to judge the advice");
  app.add_option("--routes", options.routes, "write which blocks the advice covers, for a replay");
  app.add_option("--apply", wishes, "SITE=KIND: judge this instead of advising");
  app.add_flag("--all", options.all, "advise what libraries of the system allocate for themselves, too");
  app.add_flag("--progress", progress, "write lines 'progress FRACTION TEXT' to standard error");
  return command::run(app, argc, argv, [&] {
    for (const std::string& wish : wishes) options.wishes.push_back(wish_of(wish));
    const advise::Advice advice = advise::advise(options, command::progress_lines(progress, "reading"));
    command::print(journal::json_text(advise::advice_json(advice)));
  });
}
