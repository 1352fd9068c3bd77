// What a real program's frames would have allocated from temp, and what else the program did meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace blockyard::bench {

struct FrameBlock {
  std::uint32_t size;
  std::uint32_t alignment;
};

/// A block that outlives its frame, belongs to another thread, or is too large.
struct OtherBlock {
  std::uint64_t size;
  std::uint32_t alignment;
};

/// An allocation or a free of such a block.
struct OtherCall {
  std::size_t place;    ///< it came before taken[place] was allocated
  std::uint32_t block;  ///< index into `others`
  bool frees;
};

struct FrameBlocks {
  /// The blocks of 1 to `largest` bytes that the thread with the frame marks allocated and freed within one frame, in
  /// their order. malloc's alignment is 16.
  std::vector<FrameBlock> taken;
  std::vector<std::uint32_t> freed;  ///< for each of them, the number of its free, counted over all
  std::vector<OtherBlock> others;
  std::vector<std::uint32_t> alive;  ///< those of the others that are live when the first frame begins
  std::vector<OtherCall> calls;      ///< from then on
};

/// Throws journal::Error.
FrameBlocks read_frame_blocks(const std::string& journal, std::uint32_t largest);

}  // namespace blockyard::bench
