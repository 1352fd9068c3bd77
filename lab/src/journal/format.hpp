// The bytes of a .byj file: constants, sections, and the little-endian helpers that read and write them.
// docs/reference/journal-format.md draws all of it with a worked example.
//
//   preface   16 bytes: magic, version, required features
//   HEAD      section: the header's fields as they were known when the file was created
//   TABL      sections: threads, names and header facts that became known later; each precedes the blocks that need it
//   STAK      sections: modules, stack frames and call stacks; each precedes the blocks that need it
//   BLCK      sections: up to 65,536 events each, decodable on their own
//   SYMS      sections: the names of stack frames
//   FOOT      section: the whole header, totals, and the index of the other sections
//   tail      16 bytes: where FOOT begins, end magic
//
// Invariants: every byte is covered by a magic or a checksum; a section's length is trusted only after the checksum of
// its head matched; no length makes a reader allocate more than the file holds.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "journal/event.hpp"

namespace blockyard::journal::format {

static_assert(std::endian::native == std::endian::little, "the journal is little-endian and read in place");

/// The first byte is above 127 and both kinds of line ends follow: a transfer that mangles text is noticed at once (PNG
/// does the same).
inline constexpr std::array<char, 8> magic{'\x89', 'B', 'Y', 'J', '\r', '\n', '\x1a', '\n'};
inline constexpr std::array<char, 8> end_magic{'B', 'Y', 'J', '-', 'E', 'N', 'D', '\n'};
/// Written unless the journal has call stacks or tags.
inline constexpr std::uint16_t version_without_stacks = 1;
inline constexpr std::uint16_t version_with_stacks = 2;
inline constexpr std::size_t version_offset = 8;
/// Features that a reader must know to read the events correctly; so far there are none.
inline constexpr std::uint32_t known_features = 0;
inline constexpr std::size_t preface_bytes = 16;
inline constexpr std::size_t tail_bytes = 16;

/// Events in a block: 1 MiB at 16 bytes per event before compression.
inline constexpr std::uint32_t block_events = 65'536;

constexpr std::uint32_t section_type(const char (&name)[5]) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(name[i]);
  return value;
}
inline constexpr std::uint32_t section_head = section_type("HEAD");
inline constexpr std::uint32_t section_table = section_type("TABL");
inline constexpr std::uint32_t section_block = section_type("BLCK");
inline constexpr std::uint32_t section_stacks = section_type("STAK");
inline constexpr std::uint32_t section_names = section_type("SYMS");
inline constexpr std::uint32_t section_footer = section_type("FOOT");

/// What precedes every section's payload.
struct SectionHead {
  std::uint32_t type;           ///< section_*
  std::uint32_t payload_bytes;  ///< what follows this head
  std::uint64_t payload_hash;   ///< XXH3-64 of the payload
  std::uint64_t head_hash;      ///< XXH3-64 of the 16 bytes above
};
static_assert(sizeof(SectionHead) == 24);

/// A payload above this is no journal's: 65,536 events of every column are 6 MiB, a footer 1 GiB never.
inline constexpr std::uint32_t most_payload_bytes = 1U << 28;

/// What a block's payload begins with: the absolute state that makes it decodable without its predecessors.
struct BlockHead {
  std::uint64_t first_event;   ///< number of its first event in the journal
  std::uint64_t first_block;   ///< id that its first block-giving event gives
  std::uint64_t base_time_ns;  ///< the first time delta counts from here
  std::uint32_t events;        ///< 1 to block_events
  std::uint32_t planes;        ///< entries of the plane directory that follows
};
static_assert(sizeof(BlockHead) == 32);

/// Columns hold a value for each event they apply to. A value's bytes lie in planes: plane 0 has the lowest byte of
/// every value, plane 1 the next; a plane of zeros is left out. Each plane is compressed on its own, because the noisy
/// low bytes and the regular high ones need different entropy tables.
enum class Column : std::uint8_t {
  kind = 1,       ///< every event
  thread = 2,     ///< every event: index
  time = 3,       ///< every event: ns since the event before (the first: since base_time_ns)
  size = 4,       ///< allocations and reallocates: bytes
  back = 5,       ///< frees and reallocates: blocks given so far less the block that ends (1 is the newest)
  duration = 6,   ///< reallocates: ns
  alignment = 7,  ///< aligned allocations: log2 of the bytes
  address = 8,    ///< allocations and reallocates: zigzag of the difference to the address before in this block
  tag = 10,       ///< every event: a name's index
  site = 11,      ///< every event, first all of thread 0, then of thread 1, ...: site + 1; 0 is none
};
inline constexpr std::size_t column_slots = 12;

enum class Codec : std::uint8_t { stored = 0, zstd = 1 };

struct PlaneEntry {
  std::uint8_t column;
  std::uint8_t plane;  ///< 0 to 7
  std::uint8_t codec;
  std::uint8_t zero;
  std::uint32_t bytes;  ///< as stored; the planes follow the directory in its order
};
static_assert(sizeof(PlaneEntry) == 8);

/// Entries of each table in a STAK, and functions in a SYMS; a longer list goes into several sections.
inline constexpr std::uint32_t most_stack_entries = 65'536;
inline constexpr std::uint32_t most_modules = 4'096;
/// Texts in a STAK or SYMS, before the one that exceeds it.
inline constexpr std::uint32_t most_text_section_bytes = 1U << 23;

/// What a STAK's payload begins with. The tables continue those of the STAK before.
struct StackHead {
  std::uint32_t first_module = 0;
  std::uint32_t first_frame = 0;
  std::uint32_t first_node = 0;
  std::uint32_t modules = 0;
  std::uint32_t frames = 0;
  std::uint32_t nodes = 0;
  std::uint32_t unmappings = 0;
  std::uint32_t text_bytes = 0;
  std::uint32_t planes = 0;  ///< entries of the plane directory that follows
};
static_assert(sizeof(StackHead) == 36);

enum class StackColumn : std::uint8_t {
  module_begin = 1,
  module_bytes = 2,
  module_bias = 3,
  module_mapped = 4,    ///< ns
  module_path = 5,      ///< bytes of its path
  module_build_id = 6,  ///< bytes of its build-id
  module_text = 7,      ///< path and build-id of each module, one plane
  frame_module = 8,     ///< module + 2; 0 is none, 1 an end marker
  frame_address = 9,    ///< less the module's bias
  node_parent = 10,     ///< the node's index less its parent's; 0 at a root
  node_frame = 11,      ///< zigzag of the next unseen frame less this one: 0 where each node brings a new frame
  unmapped_module = 12,
  unmapped_ns = 13,
};

inline constexpr std::size_t stack_column_slots = 14;

/// What a SYMS's payload begins with.
struct NameHead {
  std::uint32_t first_frame = 0;
  std::uint32_t frames = 0;
  std::uint32_t functions = 0;
  std::uint32_t texts = 0;  ///< counted from 1: text 0 is empty
  std::uint32_t text_bytes = 0;
  std::uint32_t planes = 0;  ///< entries of the plane directory that follows
};
static_assert(sizeof(NameHead) == 24);

enum class NameColumn : std::uint8_t {
  text_bytes = 1,  ///< length of each text
  text = 2,        ///< the texts, one plane
  frame = 3,       ///< its index less that of the one before (the first: less first_frame)
  functions = 4,   ///< of the frame, at least 1, innermost first
  name = 5,        ///< of each function: a text
  file = 6,        ///< a text
  line = 7,        ///< 0 is unknown
};

/// Fields of HEAD, TABL and FOOT: u16 tag, u32 length, bytes. A reader skips tags that it does not know.
enum class Field : std::uint16_t {
  program = 1,
  argument = 2,  ///< one each, in order
  machine = 3,
  recorder = 4,
  started_at = 5,
  ticks_per_ns = 6,     ///< f64
  preamble_events = 7,  ///< u64
  flags = 8,            ///< u64: flag_* below
  thread = 9,           ///< u64 id, then its name: the next index
  name = 10,            ///< the next phase name (index 0, the empty name, is never written)
  thread_name = 11,     ///< u32 index, then its name: TABL only
  allocator = 12,       ///< file name of the library whose malloc the program called; not written when unknown
  recording = 13,       ///< the same in all journals of one recording; not written when unknown
  unseen = 14,          ///< a sentence about what the recorder could not see; one each
  repair = 15,          ///< a sentence about what a reader changed or made up; one each
  totals = 16,          ///< u64 events, u64 blocks given: FOOT only
  index = 17,           ///< an IndexEntry for each block: FOOT only
  stack_index = 18,     ///< u64 offset of each STAK and SYMS, in order: FOOT only
};
inline constexpr std::uint64_t flag_paced = 1;
inline constexpr std::uint64_t flag_addresses = 2;
inline constexpr std::uint64_t flag_cut_at_end = 4;
inline constexpr std::uint64_t flag_threads_unknown = 8;

struct IndexEntry {
  std::uint64_t offset;  ///< of the section's head in the file
  std::uint64_t first_event;
  std::uint64_t first_block;
  std::uint64_t base_time_ns;
  bool operator==(const IndexEntry&) const = default;
};
static_assert(sizeof(IndexEntry) == 32);

template <typename T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Reads a T at `at`; the caller has checked that it lies inside.
template <typename T>
T get(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::uint64_t hash(std::string_view bytes);
/// A section's head for this payload.
SectionHead seal(std::uint32_t type, std::string_view payload);
bool head_is_whole(const SectionHead& head);

void put_field(std::string& out, Field field, std::string_view bytes);
template <typename T>
void put_field_value(std::string& out, Field field, const T& value) {
  put_field(out, field, std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
}

}  // namespace blockyard::journal::format
