// The time of day, as the lab's files hold it.
#pragma once

#include <ctime>
#include <string>

#include "journal/system.hpp"

namespace blockyard::journal {

/// Now, as ISO 8601 in UTC.
inline std::string utc_now() {
  const std::tm parts = system::utc_now();
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace blockyard::journal
