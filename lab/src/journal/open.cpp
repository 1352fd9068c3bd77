// Recognises the forms of journals by their first bytes.
#include <string_view>

#include "journal/byj_reader.hpp"
#include "journal/heaptrack_reader.hpp"
#include "journal/input.hpp"
#include "journal/reader.hpp"
#include "journal/text_reader.hpp"

namespace blockyard::journal {

namespace {
constexpr std::size_t telling_bytes = 64;
}

std::unique_ptr<Source> open(const std::string& path, AtDamage at_damage) {
  auto input = open_input(path);
  const std::string_view first = input->peek(telling_bytes);
  if (looks_like_byj(first)) return std::make_unique<ByjSource>(path, at_damage);
  if (looks_like_heaptrack(first)) return std::make_unique<HeaptrackSource>(std::move(input), path);
  if (looks_like_text(first)) return std::make_unique<TextSource>(std::move(input), path);
  throw Error(path +
              " is no journal: it begins neither as a .byj nor as a text journal (a SIZE PTR THREAD NS) nor as a "
              "heaptrack recording");
}

}  // namespace blockyard::journal
