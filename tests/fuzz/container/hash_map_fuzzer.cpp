// libFuzzer's way into exercise_hash_map.hpp.
#include "fuzz/container/exercise_hash_map.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  blockyard::fuzz::exercise_hash_map({data, size});
  return 0;
}
