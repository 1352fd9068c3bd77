#include "study_text.hpp"

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "journal/flat_map.hpp"
#include "journal/reader.hpp"

namespace blockyard::bench {

namespace {
constexpr unsigned address_bits = 48;
}

void write_study_text(const std::string& path, const std::vector<std::string>& journals, std::uint64_t lines) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  if (!file) throw std::runtime_error(path + " can't be written");
  std::uint64_t start_ns = 1;
  for (std::size_t round = 0; lines != 0; ++round) {
    const auto source = journal::open(journals[round % journals.size()]);
    journal::FlatMap<std::uint64_t> addresses;
    const std::uint64_t tag = static_cast<std::uint64_t>(round) << address_bits;
    std::uint64_t time_ns = 0;
    for (auto events = source->next(); !events.empty() && lines != 0; events = source->next()) {
      for (const auto& event : events) {
        time_ns = start_ns + event.time_ns;
        const std::uint64_t thread = source->header().threads[event.thread].id;
        std::uint64_t address = event.address;
        if (event.kind == journal::Kind::free) {
          addresses.take(event.block + 1, address);
          std::fprintf(file.get(), "f %016" PRIX64 " %" PRIu64 " %" PRIu64 "\n", address | tag, thread, time_ns);
        } else {
          addresses.insert(event.block + 1, address);
          std::fprintf(file.get(), "a %" PRIu64 " %016" PRIX64 " %" PRIu64 " %" PRIu64 "\n", event.size, address | tag,
                       thread, time_ns);
        }
        if (--lines == 0) break;
      }
    }
    start_ns = time_ns;
  }
}

}  // namespace blockyard::bench
