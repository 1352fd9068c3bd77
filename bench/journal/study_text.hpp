// A text journal as long as the Doom 3 study's: real journals, one behind the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace blockyard::bench {

/// Writes the first `lines` lines of `journals`, read one behind the other and again from the first when they don't
/// suffice: each later one with addresses and times of its own. 11 million lines are about 420 MB.
void write_study_text(const std::string& path, const std::vector<std::string>& journals, std::uint64_t lines);

}  // namespace blockyard::bench
