// The numbers of fields are those of pprof's profile.proto.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sites/export.hpp"

namespace blockyard::sites {
namespace {

/// A protobuf message as it grows. Fields of value 0 are left out, as protobuf does.
class Message {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    if (value == 0) return;
    varint(std::uint64_t{field} << 3);
    varint(value);
  }
  void bytes(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    text_ += value;
  }
  void message(std::uint32_t field, const Message& value) { bytes(field, value.text_); }
  void packed(std::uint32_t field, const std::vector<std::uint64_t>& values) {
    Message list;
    for (const std::uint64_t value : values) list.varint(value);
    message(field, list);
  }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7f) | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

class Profile {
 public:
  explicit Profile(const Sites& sites) : sites_(sites), labels_(*sites.labels), stacks_(sites.stacks()) { string({}); }

  std::string write() {
    constexpr std::array<std::array<const char*, 2>, 4> types{
        {{"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}}};
    for (const auto& [type, unit] : types) out_.message(1, value_type(type, unit));
    for (const Site& site : sites_.sites) add(site);
    for (std::uint32_t i = 0; i < stacks_.modules().size(); ++i) {
      if (used_modules_[i]) add_mapping(i);
    }
    out_.number(10, sites_.duration_ns);
    out_.message(11, value_type("space", "bytes"));
    out_.number(12, 1);
    out_.number(14, string("alloc_space"));
    for (const std::string& text : strings_) out_.bytes(6, text);
    return out_.text();
  }

 private:
  std::uint64_t string(std::string_view text) {
    const auto [place, is_new] = string_index_.try_emplace(utf8(text), strings_.size());
    if (is_new) strings_.push_back(place->first);
    return place->second;
  }

  Message value_type(const char* type, const char* unit) {
    Message message;
    message.number(1, string(type));
    message.number(2, string(unit));
    return message;
  }

  void add(const Site& site) {
    const Totals& totals = site.totals;
    const std::vector<std::uint64_t> values{totals.allocations, totals.bytes, totals.end_blocks, totals.end_bytes};
    if (totals.allocations == 0 && totals.end_blocks == 0) return;
    std::vector<std::uint64_t> locations;
    if (!site.has_stack) locations.push_back(unknown_location());
    for (std::uint32_t node = site.node; site.has_stack && node != journal::no_node;
         node = stacks_.nodes()[node].parent) {
      locations.push_back(location(stacks_.nodes()[node].frame));
    }
    Message sample;
    sample.packed(1, locations);
    sample.packed(2, values);
    out_.message(2, sample);
  }

  /// A frame's location is its index + 1; the one after all frames stands for "no call stack".
  std::uint64_t location(std::uint32_t frame) {
    if (used_frames_[frame]) return frame + 1;
    used_frames_[frame] = true;
    const journal::Frame& where = stacks_.frames()[frame];
    Message message;
    message.number(1, frame + 1);
    if (where.module == journal::no_module) {
      message.number(3, where.address);
    } else if (where.module != journal::end_marker) {
      used_modules_[where.module] = true;
      message.number(2, where.module + 1);
      message.number(3, where.address + stacks_.modules()[where.module].bias);
    }
    for (const Label& label : labels_.of_frame(frame)) add_line(message, label);
    out_.message(4, message);
    return frame + 1;
  }

  std::uint64_t unknown_location() {
    const std::uint64_t id = stacks_.frames().size() + 1;
    Message message;
    message.number(1, id);
    Message line;
    line.number(1, function("[no call stack]", {}));
    message.message(4, line);
    out_.message(4, message);
    return id;
  }

  void add_line(Message& location, const Label& label) {
    Message line;
    line.number(1, function(labels_.text(label.function), labels_.text(label.file)));
    line.number(2, label.line);
    location.message(4, line);
  }

  std::uint64_t function(std::string_view name, std::string_view file) {
    const std::pair key(string(name), string(file));
    const auto [place, is_new] = functions_.try_emplace(key, functions_.size() + 1);
    if (is_new) {
      Message message;
      message.number(1, place->second);
      message.number(2, key.first);
      message.number(3, key.first);
      message.number(4, key.second);
      out_.message(5, message);
    }
    return place->second;
  }

  void add_mapping(std::uint32_t index) {
    const journal::Module& module = stacks_.modules()[index];
    Message message;
    message.number(1, index + 1);
    message.number(2, module.begin);
    message.number(3, module.end);
    message.number(5, string(module.path));
    message.number(6, string(module.build_id));
    for (const std::uint32_t has : {7U, 8U, 9U, 10U}) message.number(has, 1);  // functions, files, lines, inlined ones
    out_.message(3, message);
  }

  const Sites& sites_;
  const Labels& labels_;
  const journal::Stacks& stacks_;
  Message out_;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, std::uint64_t> string_index_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> functions_;
  std::vector<bool> used_frames_ = std::vector<bool>(stacks_.frames().size());
  std::vector<bool> used_modules_ = std::vector<bool>(stacks_.modules().size());
};

}  // namespace

void write_pprof(const Sites& sites, journal::ByteSink& out) { out.write(Profile(sites).write()); }

}  // namespace blockyard::sites
