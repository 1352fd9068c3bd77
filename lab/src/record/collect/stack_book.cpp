#include "record/collect/stack_book.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "unwind/rules.hpp"

namespace blockyard::record {
namespace {

std::uint32_t low_half(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
std::uint32_t high_half(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

// The recorder's reasons begin with the one that is none.
journal::StackEnd end_of(std::uint64_t reason) {
  static_assert(static_cast<int>(unwind::End::depth) == static_cast<int>(journal::StackEnd::depth_limit) + 1);
  static_assert(static_cast<int>(unwind::End::unknown) == static_cast<int>(journal::StackEnd::unknown) + 1);
  constexpr auto last = static_cast<std::uint64_t>(unwind::End::unknown);
  return static_cast<journal::StackEnd>(std::clamp<std::uint64_t>(reason, 1, last) - 1);
}

std::string hexadecimal(const std::uint8_t* bytes, std::size_t count) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

StackBook::StackBook(std::shared_ptr<journal::Stacks> tables, std::string program, double ns_per_stamp)
    : tables_(std::move(tables)), program_(std::move(program)), ns_per_stamp_(ns_per_stamp) {
  if (tables_ == nullptr) tables_ = std::make_shared<journal::Stacks>();
}

void StackBook::apply(std::uint32_t thread, std::uint64_t stamp, const std::uint64_t* record) {
  switch (kind_of(record[0])) {
    case RecordKind::stack_node:
      add_node(thread, record);
      break;
    case RecordKind::stack_clear:
      if (thread < nodes_.size()) nodes_[thread].clear();
      break;
    case RecordKind::module:
      map(stamp, record);
      break;
    case RecordKind::module_gone:
      unmap(stamp, payload_of(record[0]), payload_of(record[0]) + 1);
      break;
    default:
      break;
  }
}

std::uint32_t StackBook::node(std::uint32_t thread, std::uint64_t site_word) const {
  const std::uint32_t number = low_half(site_word);
  if (thread >= nodes_.size() || number >= nodes_[thread].size()) return journal::no_node;
  return nodes_[thread][number];
}

void StackBook::forget_thread(std::uint32_t thread) {
  if (thread < nodes_.size()) nodes_[thread] = std::vector<std::uint32_t>();
}

void StackBook::add_node(std::uint32_t thread, const std::uint64_t* record) {
  if (thread >= nodes_.size()) nodes_.resize(thread + 1);
  std::vector<std::uint32_t>& nodes = nodes_[thread];
  const std::uint32_t number = low_half(record[2]);
  const std::uint32_t parent = high_half(record[2]);
  const std::uint64_t payload = payload_of(record[0]);
  const std::uint32_t frame = (payload & root_flag) != 0 ? tables_->intern_frame(end_of(payload & 0xff))
                                                         : frame_at(unwind::Address{payload}.value());
  if (number >= nodes.size()) nodes.resize(number + 1, journal::no_node);
  nodes[number] = tables_->intern_node(parent < number ? nodes[parent] : journal::no_node, frame);
}

std::uint32_t StackBook::frame_at(std::uint64_t address) {
  auto found = mapped_.upper_bound(address);
  if (found != mapped_.begin()) {
    --found;
    const journal::Module& module = tables_->modules()[found->second];
    if (address < module.end) return tables_->intern_frame(found->second, address - module.bias);
  }
  return tables_->intern_frame(journal::no_module, address);
}

void StackBook::map(std::uint64_t stamp, const std::uint64_t* record) {
  ModuleFacts facts{};
  const std::size_t bytes = payload_of(record[0]);
  if (bytes < sizeof facts) return;
  std::memcpy(&facts, record + 2, sizeof facts);
  journal::Module module;
  module.path.assign(reinterpret_cast<const char*>(record + 2) + sizeof facts, bytes - sizeof facts);
  if (module.path.empty()) module.path = program_;
  module.build_id = hexadecimal(facts.build_id, std::min<std::size_t>(facts.build_id_bytes, sizeof facts.build_id));
  module.begin = facts.begin;
  module.end = facts.end;
  module.bias = facts.bias;
  module.mapped_ns = time_of(stamp);
  if (module.begin >= module.end) return;
  if (const auto found = mapped_.find(module.begin); found != mapped_.end()) {
    const journal::Module& known = tables_->modules()[found->second];
    if (known.end == module.end && known.bias == module.bias && known.path == module.path &&
        known.build_id == module.build_id)
      return;
  }
  unmap(stamp, module.begin, module.end);
  const std::uint64_t begin = module.begin;
  mapped_[begin] = tables_->add_module(std::move(module));
}

// Everything that overlaps [begin, end) is gone.
void StackBook::unmap(std::uint64_t stamp, std::uint64_t begin, std::uint64_t end) {
  auto at = mapped_.upper_bound(begin);
  if (at != mapped_.begin()) --at;
  while (at != mapped_.end() && at->first < end) {
    if (tables_->modules()[at->second].end <= begin) {
      ++at;
      continue;
    }
    tables_->set_unmapped(at->second, time_of(stamp));
    at = mapped_.erase(at);
  }
}

}  // namespace blockyard::record
