// Other tools' logs whose bytes are anything: every form's reader gets them, whatever they look like.
#include "fuzz_source.hpp"
#include "journal/forms.hpp"

namespace journal = blockyard::journal;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view line = journal::first_line(bytes);
  for (const journal::Form& form : journal::text_forms()) {
    form.looks(line);
    if (form.name == "text" || form.name == "heaptrack") continue;  // they have fuzzers of their own
    journal::fuzz::expect_sentence([&] {
      const auto source = form.open(std::make_unique<journal::fuzz::MemoryInput>(bytes), "log", form);
      journal::fuzz::walk(*source, true);
    });
  }
  return 0;
}
