// The call stack of each event of a stretch as a number, for the report to join with a replay's samples.
//
//   magic "BYSITES\n" | u32 version | u32 flags | u64 events, nodes, frames, labels, texts, text_bytes
//   | u64[nodes] peak_bytes | u64[nodes] peak_blocks | u64[nodes] end_bytes | u64[nodes] end_blocks
//   | u32[events] node | u32[nodes] parent | u32[nodes] frame | u32[nodes] speaker | u32[frames + 1] first_label
//   | u32[labels][4] function, file, line, module | u32[texts] text_end | u8[texts] wraps | text bytes
//
// Little-endian. blockyard/analysis/sites.py reads it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "journal/progress.hpp"

namespace blockyard::sites {

inline constexpr char event_stacks_magic[8] = {'B', 'Y', 'S', 'I', 'T', 'E', 'S', '\n'};
inline constexpr std::uint32_t event_stacks_version = 1;
/// Flag: at least one frame has a name.
inline constexpr std::uint32_t event_stacks_named = 1;

struct Stretch {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = std::numeric_limits<std::uint64_t>::max();  ///< exclusive
};

/// Writes `output`, over what is there, for the events that a replay of the stretch measures and for the blocks that
/// are alive when it begins. Nodes that neither of them needs are left out. Returns false, and writes nothing, when
/// none of them has a stack. Reads the journal once; memory grows with the live blocks, the stacks, and 4 bytes for
/// each event. Throws journal::Error.
bool write_event_stacks(const std::string& path, const Stretch& stretch, const std::string& output,
                        const journal::Progress& progress);

/// By node of a file that write_event_stacks() wrote the label that speaks for it when functions that the regular
/// expression `skip` matches do not. What the file says of places is taken for true: sites.py checks it. Throws
/// journal::Error.
std::vector<std::uint32_t> read_speakers(const std::string& file, const std::string& skip);

}  // namespace blockyard::sites
