// libFuzzer's way into exercise_ordered.hpp.
#include "fuzz/container/exercise_ordered.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  blockyard::fuzz::exercise_ordered({data, size});
  return 0;
}
