#include "budget/limits.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fnmatch.h>

#include "blockyard/forbid.h"
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

/// The path's levels apart from those that forbid, and the names of these.
std::pair<std::string, std::vector<std::string>> split(std::string_view path) {
  std::pair<std::string, std::vector<std::string>> found;
  bool names = false;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view level = path.substr(0, end);
    if (names) {
      found.second.emplace_back(level);
      names = false;
    } else if (level == BY_FORBIDDEN) {
      names = true;
    } else {
      if (!found.first.empty()) found.first += '/';
      found.first += level;
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return found;
}

}  // namespace

std::vector<std::string> forbidden_in(std::string_view path) {
  // Where the name is still to come the mark itself is at work, as C#'s is, which copies a new name.
  if (path == BY_FORBIDDEN || path.ends_with("/" BY_FORBIDDEN)) return {};
  return split(path).second;
}

std::string without_forbidden(std::string_view path) { return split(path).first; }

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
    found.cut = json.value("cut", false);
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
