// Text journals whose bytes are anything; compressed ones too, since what opens a file decides by its first bytes.
#include "fuzz_source.hpp"
#include "journal/record_source.hpp"
#include "journal/text_parser.hpp"

namespace journal = blockyard::journal;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  journal::fuzz::expect_sentence([&] {
    journal::RecordSource source(
        std::make_unique<journal::TextParser>(std::make_unique<journal::fuzz::MemoryInput>(bytes), "text"), "text",
        "text");
    journal::fuzz::walk(source, true);
  });
  if (bytes.starts_with("\x28\xB5\x2F\xFD") || bytes.starts_with("\x1F\x8B")) {
    const journal::fuzz::MemoryFile file(bytes);
    journal::fuzz::expect_sentence([&] { journal::fuzz::walk(*journal::open(file.path()), false); });
  }
  return 0;
}
