// heaptrack recordings whose bytes are anything.
#include "fuzz_source.hpp"
#include "journal/heaptrack_reader.hpp"

namespace journal = blockyard::journal;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  journal::fuzz::expect_sentence([&] {
    journal::HeaptrackSource source(std::make_unique<journal::fuzz::MemoryInput>(bytes), "recording");
    journal::fuzz::walk(source, true);
  });
  return 0;
}
