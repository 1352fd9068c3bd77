// libFuzzer's way into exercise_list.hpp.
#include "fuzz/container/exercise_list.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  blockyard::fuzz::exercise_list({data, size});
  return 0;
}
