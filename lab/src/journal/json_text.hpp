// JSON as the lab writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace blockyard::journal {

/// Members keep the order in which they were added.
using Json = nlohmann::ordered_json;

/// Names and paths need not be UTF-8: invalid bytes are replaced. `indent` -1 puts everything on one line.
inline std::string json_text(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace blockyard::journal
