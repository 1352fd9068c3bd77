// libFuzzer's way into exercise_blocks.hpp.
#include "fuzz/block/exercise_blocks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  blockyard::fuzz::exercise_blocks({data, size});
  return 0;
}
