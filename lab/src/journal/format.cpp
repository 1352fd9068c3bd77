#include "journal/format.hpp"

#include <xxhash.h>

#include <cstddef>

namespace blockyard::journal::format {

std::uint64_t hash(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

namespace {
std::uint64_t head_hash(const SectionHead& head) {
  return hash({reinterpret_cast<const char*>(&head), offsetof(SectionHead, head_hash)});
}
}  // namespace

SectionHead seal(std::uint32_t type, std::string_view payload) {
  SectionHead head{type, static_cast<std::uint32_t>(payload.size()), hash(payload), 0};
  head.head_hash = head_hash(head);
  return head;
}

bool head_is_whole(const SectionHead& head) { return head.head_hash == head_hash(head); }

void put_field(std::string& out, Field field, std::string_view bytes) {
  put(out, static_cast<std::uint16_t>(field));
  put(out, static_cast<std::uint32_t>(bytes.size()));
  out.append(bytes);
}

}  // namespace blockyard::journal::format
