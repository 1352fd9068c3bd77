// What the parser of a form gives: lines as records, with the program's own pointers; nothing is resolved or put in
// order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "journal/event.hpp"
#include "journal/stacks.hpp"

namespace blockyard::journal {

/// What only few lines have.
struct Extra {
  std::uint64_t old_address = 0;  ///< reallocate
  std::uint64_t duration_ns = 0;  ///< reallocate
  std::uint32_t alignment = 0;    ///< allocate_aligned
  std::uint32_t site = no_site;
  std::uint32_t tag = 0;
};
inline constexpr std::uint32_t no_extra = 0xFFFF'FFFF;

/// One line, or the lines of one realloc.
struct Record {
  std::uint64_t time_ns;
  std::uint64_t address;  ///< 0 for marks
  std::uint64_t size;
  std::uint64_t line;
  std::uint32_t thread;  ///< dense index
  std::uint32_t extra;   ///< index into the chunk's extras, or no_extra
  Kind kind;
  bool done;  ///< was emitted ahead of its turn
};

/// What a text's # lines add to the call stacks.
struct StackLines {
  struct Named {
    std::uint32_t frame;
    std::uint32_t line;
    std::string name;
    std::string file;
  };
  std::vector<Module> modules;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> unmapped;  ///< module, ns
  std::vector<Frame> frames;
  std::vector<Node> nodes;
  std::vector<Named> names;  ///< a frame's functions stand together
  /// Adds all of it.
  void add_to(Stacks& stacks) const;
};

struct Chunk {
  std::vector<Record> records;
  std::vector<Extra> extras;
  std::shared_ptr<const Header> header;      ///< set when threads, names or facts changed
  std::shared_ptr<const StackLines> stacks;  ///< set when there are new ones
  std::uint64_t bytes_read = 0;
  bool annotated = false;  ///< the text's first line says that # lines have meaning
  bool last = false;
  bool torn = false;  ///< the text's last event is cut off, and left out
  bool cut = false;   ///< the compressed stream that holds the text is cut off

  /// For the next records; memory is kept.
  void clear() {
    records.clear();
    extras.clear();
    header.reset();
    stacks.reset();
    last = torn = cut = false;
  }
};

/// The sentence about a compressed stream of which no event is left.
inline std::string cut_before_events(const std::string& path) {
  return path + ": the compressed stream ends before the first event (the file was cut short)";
}

/// Parses one form. One thread at a time.
class RecordParser {
 public:
  /// Records in a chunk.
  static constexpr std::size_t chunk_records = 16'384;

  virtual ~RecordParser() = default;
  /// Fills `chunk`, whose vectors are reused. Throws Error with the line's number.
  virtual void next(Chunk& chunk) = 0;
  virtual std::uint64_t bytes_total() const = 0;
  /// Whether the writer of the form may miss calls, so that a free of nothing is no mistake of the file.
  virtual bool may_miss_calls() const { return false; }
};

/// `preamble_events` of a text without a `# preamble` line.
inline constexpr std::uint64_t preamble_unsaid = ~std::uint64_t{0};

}  // namespace blockyard::journal
