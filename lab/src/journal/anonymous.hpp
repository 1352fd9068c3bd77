// A journal's header without the texts that tell whose program was recorded.
#pragma once

#include <string>
#include <unordered_map>

#include "journal/event.hpp"

namespace blockyard::journal {

/// Replaces names by numbers that keep apart what was apart, and leaves out the program and its arguments. The same
/// name gets the same number each time. One thread at a time.
class Anonymizer {
 public:
  /// The header as it stands now; valid until the next call.
  const Header& without_texts(const Header& header);

 private:
  std::string number(const std::string& name);

  Header header_;
  std::unordered_map<std::string, std::string> numbers_;
};

}  // namespace blockyard::journal
