// Converts a journal of any form to .byj or text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "journal/event.hpp"
#include "journal/journal_output.hpp"
#include "journal/pace.hpp"
#include "journal/progress.hpp"

namespace blockyard::journal {

struct ConvertOptions {
  bool plain = false;         ///< text: no # lines
  bool join_realloc = false;  ///< a free and an allocation at the same time on the same thread become one reallocate
  bool addresses = false;     ///< .byj: keep the text's pointers
  bool anonymous = false;     ///< no names, paths and arguments: numbers that keep apart what was apart
  bool overwrite = false;
  std::string from = {};                ///< the input's form, by name; empty: its first line shows it
  OutputForm to = OutputForm::by_name;  ///< the output's
  std::optional<Pace> pace = {};        ///< of a journal without times
};

struct Outcome {
  std::uint64_t events = 0;
  std::uint64_t preamble_events = 0;
  std::uint64_t bytes = 0;   ///< of the written file
  std::uint64_t joined = 0;  ///< reallocs made of a free and an allocation
  std::vector<std::string> notes;
};

/// Streams; memory grows with the live blocks only. Throws Error; `output` appears only on success.
Outcome convert(const std::string& input, const std::string& output, const ConvertOptions& options,
                const Progress& progress);

}  // namespace blockyard::journal
