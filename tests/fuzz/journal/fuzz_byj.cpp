// A .byj whose bytes are anything. Its checksums are made right first, so that the fuzzer gets behind them.
#include "fuzz_source.hpp"
#include "journal/byj_reader.hpp"
#include "journal/format.hpp"

namespace {

namespace journal = blockyard::journal;
namespace format = journal::format;

void reseal(std::string& bytes) {
  std::size_t at = format::preface_bytes;
  while (bytes.size() - at >= sizeof(format::SectionHead)) {
    auto head = format::get<format::SectionHead>(bytes, at);
    const std::size_t room = bytes.size() - at - sizeof head;
    const std::size_t payload = std::min<std::size_t>(head.payload_bytes, room);
    head = format::seal(head.type, std::string_view(bytes).substr(at + sizeof head, payload));
    std::memcpy(bytes.data() + at, &head, sizeof head);
    at += sizeof head + payload;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  // One input in two goes in as it is: what stands before the checksums is fuzzed as well.
  if (size > format::preface_bytes && bytes.back() % 2 == 0) reseal(bytes);
  const journal::fuzz::MemoryFile file(bytes);
  for (const auto at_damage : {journal::AtDamage::fail, journal::AtDamage::end}) {
    journal::fuzz::expect_sentence([&] {
      journal::ByjSource source(file.path(), at_damage);
      journal::fuzz::walk(source, false);
    });
  }
  return 0;
}
