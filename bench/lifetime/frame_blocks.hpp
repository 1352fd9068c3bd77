// What a real program's frames would have taken from temp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace blockyard::bench {

struct FrameBlock {
  std::uint32_t size;
  std::uint32_t alignment;
};

/// The blocks of 1 to `largest` bytes that the thread which marks the frames allocated and freed again within one
/// frame, in their order. malloc's alignment is 16. Throws journal::Error.
std::vector<FrameBlock> read_frame_blocks(const std::string& journal, std::uint32_t largest);

}  // namespace blockyard::bench
