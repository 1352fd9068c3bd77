// Writes journals anew: in another form, a stretch of one, or one several times over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/event.hpp"
#include "journal/progress.hpp"

namespace blockyard::journal {

struct ConvertOptions {
  bool plain = false;         ///< text: no # lines
  bool join_realloc = false;  ///< a free and an allocation at the same time on the same thread become one reallocate
  bool addresses = false;     ///< .byj: keep the text's pointers
  bool anonymous = false;     ///< no names, paths and arguments: numbers that keep apart what was apart
  bool overwrite = false;
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

struct CutOptions {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = ~std::uint64_t{0};  ///< exclusive; the default: to the end
  bool overwrite = false;
};

/// Cuts a stretch out of a journal; the blocks alive at its start become its preamble. Streams in one pass; memory
/// grows with the live blocks only. A journal that was cut short is read as far as it is whole, and a note says so. Of
/// a damaged one, what comes before the damage is written, and an Error says so. Throws Error; otherwise `output`
/// appears only on success.
Outcome cut(const std::string& input, const std::string& output, const CutOptions& options, const Progress& progress);

struct RepeatOptions {
  std::uint64_t times = 1;  ///< repetitions in all
  bool overwrite = false;
};

/// Makes a long journal out of a real one. A seam joins two repetitions, as when a game leaves one level and loads the
/// next. The blocks that are still alive are freed in the order of their allocation, each on its allocating thread;
/// then the journal's preamble is allocated again. A microsecond lies between two of these events. Blocks get new ids,
/// times continue. The first repetition keeps its preamble, the last one its end. Reads the input as often as it is
/// repeated; memory grows with the live blocks only. Throws Error; `output` appears only on success.
Outcome repeat(const std::string& input, const std::string& output, const RepeatOptions& options,
               const Progress& progress);

}  // namespace blockyard::journal
