#include "budget/limits.hpp"

#include <map>

#include <fnmatch.h>

#include "journal/event.hpp"

namespace blockyard::budget {
namespace {

const std::map<std::string, Quantity> quantities{
    {"allocations", Quantity::allocations},
    {"allocated-bytes", Quantity::allocated_bytes},
    {"frees", Quantity::frees},
    {"reallocations", Quantity::reallocations},
    {"live-bytes", Quantity::live_bytes},
    {"outliving-blocks", Quantity::outliving_blocks},
};
const std::map<std::string, Per> periods{{"frame", Per::frame}, {"second", Per::second}, {"run", Per::run}};

}  // namespace

bool fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
}

Limits limits_of(const journal::Json& json) {
  try {
    Limits found;
    for (const auto& one : json.at("limits")) {
      Limit limit;
      limit.thread = one.value("thread", "");
      limit.tag = one.value("tag", "");
      limit.site = one.value("site", "");
      limit.what = quantities.at(one.at("what").get<std::string>());
      limit.per = periods.at(one.at("per").get<std::string>());
      limit.most = one.at("most").get<std::uint64_t>();
      limit.after_phase = one.value("after_phase", "");
      limit.after_frames = one.value("after_frames", std::uint64_t{0});
      limit.after_ns = one.value("after_ns", std::uint64_t{0});
      found.limits.push_back(limit);
    }
    found.ignored = json.at("ignored").get<std::vector<std::string>>();
    if (found.limits.size() > most_limits) throw journal::Error("more than 64 limits can't be judged at once");
    return found;
  } catch (const journal::Json::exception& error) {
    throw journal::Error(std::string("the limits can't be read: ") + error.what());
  } catch (const std::out_of_range&) {
    throw journal::Error("the limits name a quantity or a period that is none");
  }
}

}  // namespace blockyard::budget
