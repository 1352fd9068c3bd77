// blockyard-budget: holds a journal to limits, and prints as JSON what exceeded them.
#include <fstream>
#include <string>

#include "budget/judge.hpp"
#include "budget/limits.hpp"
#include "journal/command.hpp"
#include "journal/json_text.hpp"

namespace {

using namespace blockyard;

journal::Json read(const std::string& path) {
  std::ifstream file(path);
  journal::Json json = journal::Json::parse(file, nullptr, false);
  if (json.is_discarded()) throw journal::Error(path + " is no file of limits");
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What of a journal exceeds limits.", "blockyard-budget");
  std::string path;
  std::string limits;
  bool progress = false;
  app.add_option("journal", path, "a journal")->required();
  app.add_option("--limits", limits, "JSON")->required();
  app.add_flag("--progress", progress, "write lines 'progress FRACTION TEXT' to standard error");
  return journal::command::run(app, argc, argv, [&] {
    const budget::Limits wanted = budget::limits_of(read(limits));
    const journal::Progress tell = journal::command::progress_lines(progress, "judging");
    journal::command::print(journal::json_text(budget::judge(path, wanted, tell)));
  });
}
