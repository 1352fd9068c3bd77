#include "journal/stack_codec.hpp"

#include <algorithm>
#include <unordered_map>

namespace blockyard::journal {

using format::NameColumn;
using format::NameHead;
using format::StackColumn;
using format::StackHead;

namespace {

// Tables are small beside the events, and written seldom.
constexpr int compression_level = 9;
// A module's number in the file: 0 and 1 are the two that are none.
constexpr std::uint64_t stored_no_module = 0;
constexpr std::uint64_t stored_end_marker = 1;
constexpr std::uint64_t stored_modules = 2;

template <typename Column>
constexpr std::uint8_t slot_of(Column column) {
  return static_cast<std::uint8_t>(column);
}

[[noreturn]] void fail(const std::string& where, const std::string& what) { throw Error(where + ": " + what); }

/// Hands out texts that lie one behind another.
class TextCutter {
 public:
  TextCutter(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}
  std::string_view take(std::uint64_t length) {
    if (length > bytes_.size()) fail(where_, "a text is longer than the section that holds it");
    const std::string_view text = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return text;
  }

 private:
  std::string_view bytes_;
  const std::string& where_;
};

}  // namespace

StackEncoder::StackEncoder() : planes_(compression_level) {}

void StackEncoder::begin() {
  for (auto& values : columns_) values.clear();
  bytes_.clear();
  planes_.begin();
}

template <typename Head>
const std::string& StackEncoder::finish(Head& head, std::uint8_t text_slot) {
  for (std::size_t slot = 1; slot < columns_.size(); ++slot) {
    planes_.put(static_cast<std::uint8_t>(slot), columns_[slot]);
  }
  planes_.put_bytes(text_slot, bytes_);
  head.text_bytes = static_cast<std::uint32_t>(bytes_.size());
  head.planes = planes_.planes();
  payload_.clear();
  format::put(payload_, head);
  planes_.append_to(payload_);
  return payload_;
}

const std::string& StackEncoder::tables(const Stacks& stacks, StackCounts& written) {
  begin();
  const StackCounts all = stacks.counts();
  const auto some = [](std::uint32_t from, std::uint32_t to) {
    return std::min(to - from, format::most_stack_entries);
  };
  StackHead head;
  head.first_module = written.modules;
  head.first_frame = written.frames;
  head.first_node = written.nodes;
  const auto push = [this](StackColumn to, std::uint64_t value) { columns_[slot_of(to)].push_back(value); };
  // In the order of their dependence: what a full section leaves out, the next one holds.
  while (written.modules < all.modules && head.modules < format::most_modules) {
    const Module& module = stacks.modules()[written.modules];
    if (bytes_.size() + module.path.size() + module.build_id.size() > format::most_text_section_bytes) break;
    push(StackColumn::module_begin, module.begin);
    push(StackColumn::module_bytes, module.end - module.begin);
    push(StackColumn::module_bias, module.bias);
    push(StackColumn::module_mapped, module.mapped_ns);
    push(StackColumn::module_path, module.path.size());
    push(StackColumn::module_build_id, module.build_id.size());
    bytes_ += module.path;
    bytes_ += module.build_id;
    ++head.modules;
    ++written.modules;
  }
  const bool all_modules = written.modules == all.modules;
  head.frames = all_modules ? some(written.frames, all.frames) : 0;
  for (std::uint32_t i = 0; i < head.frames; ++i) {
    const Frame& frame = stacks.frames()[written.frames + i];
    push(StackColumn::frame_module, frame.module == no_module    ? stored_no_module
                                    : frame.module == end_marker ? stored_end_marker
                                                                 : frame.module + stored_modules);
    push(StackColumn::frame_address, frame.address);
  }
  written.frames += head.frames;
  const bool all_frames = all_modules && written.frames == all.frames;
  head.nodes = all_frames ? some(written.nodes, all.nodes) : 0;
  std::uint32_t next_frame = head.first_frame;
  for (std::uint32_t i = 0; i < head.nodes; ++i) {
    const std::uint32_t index = written.nodes + i;
    const Node& node = stacks.nodes()[index];
    push(StackColumn::node_parent, node.parent == no_node ? 0 : index - node.parent);
    push(StackColumn::node_frame, format::zigzag(std::int64_t{next_frame} - std::int64_t{node.frame}));
    if (node.frame >= next_frame) next_frame = node.frame + 1;
  }
  written.nodes += head.nodes;
  head.unmappings = all_modules ? some(written.unmappings, all.unmappings) : 0;
  for (std::uint32_t i = 0; i < head.unmappings; ++i) {
    const std::uint32_t module = stacks.unmappings()[written.unmappings + i];
    push(StackColumn::unmapped_module, module);
    push(StackColumn::unmapped_ns, stacks.modules()[module].unmapped_ns);
  }
  written.unmappings += head.unmappings;
  return finish(head, slot_of(StackColumn::module_text));
}

const std::string& StackEncoder::names(const Stacks& stacks, std::uint32_t& frame) {
  begin();
  NameHead head;
  const auto push = [this](NameColumn to, std::uint64_t value) { columns_[slot_of(to)].push_back(value); };
  // Texts are numbered by their first use in the section; 0 is the empty one.
  std::unordered_map<std::uint32_t, std::uint32_t> numbers{{0, 0}};
  const auto number_of = [&](std::uint32_t text) {
    const auto [place, is_new] = numbers.try_emplace(text, static_cast<std::uint32_t>(numbers.size()));
    if (is_new) {
      push(NameColumn::text_bytes, stacks.text(text).size());
      bytes_ += stacks.text(text);
      ++head.texts;
    }
    return place->second;
  };
  std::uint32_t last = frame;
  const std::uint32_t frames = stacks.counts().frames;
  for (; frame < frames; ++frame) {
    const auto functions = stacks.names(frame);
    if (functions.empty()) continue;
    if (head.functions != 0 &&
        (head.functions + functions.size() > format::most_stack_entries ||
         head.texts > format::most_stack_entries / 2 || bytes_.size() > format::most_text_section_bytes / 2)) {
      break;
    }
    if (head.frames == 0) head.first_frame = last = frame;
    push(NameColumn::frame, frame - last);
    last = frame;
    push(NameColumn::functions, functions.size());
    for (const Function& function : functions) {
      push(NameColumn::name, number_of(function.name));
      push(NameColumn::file, number_of(function.file));
      push(NameColumn::line, function.line);
    }
    ++head.frames;
    head.functions += static_cast<std::uint32_t>(functions.size());
  }
  return finish(head, slot_of(NameColumn::text));
}

const std::vector<std::uint64_t>& StackDecoder::read(std::uint8_t slot, std::uint32_t count) {
  if (!planes_.read(slot, count, columns_[slot])) columns_[slot].assign(count, 0);
  return columns_[slot];
}

void StackDecoder::tables(std::string_view payload, Stacks& stacks, const std::string& where) {
  if (payload.size() < sizeof(StackHead)) fail(where, "the call stacks' section is too short for its head");
  const auto head = format::get<StackHead>(payload, 0);
  const StackCounts before = stacks.counts();
  if (head.first_module != before.modules || head.first_frame != before.frames || head.first_node != before.nodes) {
    fail(where, "the call stacks do not continue those before them; a section is missing or doubled");
  }
  if (head.modules > format::most_modules) fail(where, "the section claims too many modules");
  for (const std::uint32_t count : {head.frames, head.nodes, head.unmappings}) {
    if (count > format::most_stack_entries) fail(where, "the section claims too many call stacks");
  }
  if (head.text_bytes > 2 * format::most_text_section_bytes) fail(where, "the section claims too much text");
  planes_.begin(payload, sizeof head, head.planes, where);
  const auto values = [this](StackColumn from, std::uint32_t count) -> const std::vector<std::uint64_t>& {
    return read(slot_of(from), count);
  };
  try {
    const auto& begin = values(StackColumn::module_begin, head.modules);
    const auto& bytes = values(StackColumn::module_bytes, head.modules);
    const auto& bias = values(StackColumn::module_bias, head.modules);
    const auto& mapped = values(StackColumn::module_mapped, head.modules);
    const auto& path = values(StackColumn::module_path, head.modules);
    const auto& build_id = values(StackColumn::module_build_id, head.modules);
    const std::string texts(planes_.read_bytes(slot_of(StackColumn::module_text), head.text_bytes));
    TextCutter cutter(texts, where);
    for (std::uint32_t i = 0; i < head.modules; ++i) {
      Module module;
      module.begin = begin[i];
      module.end = begin[i] + bytes[i];
      module.bias = bias[i];
      module.mapped_ns = mapped[i];
      module.path = cutter.take(path[i]);
      module.build_id = cutter.take(build_id[i]);
      stacks.add_module(std::move(module));
    }
    const auto& modules = values(StackColumn::frame_module, head.frames);
    const auto& addresses = values(StackColumn::frame_address, head.frames);
    for (std::uint32_t i = 0; i < head.frames; ++i) {
      const std::uint64_t stored = modules[i];
      if (stored >= stored_modules + stacks.modules().size()) {
        fail(where, "stack frame " + std::to_string(before.frames + i) + " names a module that does not exist");
      }
      const auto module = stored == stored_no_module    ? no_module
                          : stored == stored_end_marker ? end_marker
                                                        : static_cast<std::uint32_t>(stored - stored_modules);
      if (stacks.intern_frame(module, addresses[i]) != before.frames + i) {
        fail(where, "stack frame " + std::to_string(before.frames + i) + " is there twice");
      }
    }
    const auto& parents = values(StackColumn::node_parent, head.nodes);
    const auto& frames = values(StackColumn::node_frame, head.nodes);
    std::uint32_t next_frame = head.first_frame;
    for (std::uint32_t i = 0; i < head.nodes; ++i) {
      const std::uint32_t index = before.nodes + i;
      if (parents[i] > index) {
        fail(where, "call stack " + std::to_string(index) + " continues one that does not exist");
      }
      const auto frame = static_cast<std::uint64_t>(std::int64_t{next_frame} - format::unzigzag(frames[i]));
      if (frame >= stacks.frames().size()) {
        fail(where, "call stack " + std::to_string(index) + " names a stack frame that does not exist");
      }
      if (frame >= next_frame) next_frame = static_cast<std::uint32_t>(frame) + 1;
      const auto parent = parents[i] == 0 ? no_node : index - static_cast<std::uint32_t>(parents[i]);
      if (stacks.intern_node(parent, static_cast<std::uint32_t>(frame)) != index) {
        fail(where, "call stack " + std::to_string(index) + " is there twice");
      }
    }
    const auto& unmapped = values(StackColumn::unmapped_module, head.unmappings);
    const auto& unmapped_ns = values(StackColumn::unmapped_ns, head.unmappings);
    for (std::uint32_t i = 0; i < head.unmappings; ++i) {
      if (unmapped[i] >= stacks.modules().size()) fail(where, "a module is unmapped that does not exist");
      stacks.set_unmapped(static_cast<std::uint32_t>(unmapped[i]), unmapped_ns[i]);
    }
  } catch (const Error& error) {
    const std::string what = error.what();
    if (what.starts_with(where)) throw;
    fail(where, what);
  }
}

void StackDecoder::names(std::string_view payload, Stacks& stacks, const std::string& where) {
  if (payload.size() < sizeof(NameHead)) fail(where, "the names' section is too short for its head");
  const auto head = format::get<NameHead>(payload, 0);
  if (head.frames > format::most_stack_entries || head.texts > 3 * format::most_stack_entries ||
      head.functions > 2 * format::most_stack_entries || head.text_bytes > 2 * format::most_text_section_bytes) {
    fail(where, "the section claims too many names");
  }
  planes_.begin(payload, sizeof head, head.planes, where);
  const auto& lengths = read(slot_of(NameColumn::text_bytes), head.texts);
  const auto& frames = read(slot_of(NameColumn::frame), head.frames);
  const auto& counts = read(slot_of(NameColumn::functions), head.frames);
  const auto& names = read(slot_of(NameColumn::name), head.functions);
  const auto& files = read(slot_of(NameColumn::file), head.functions);
  const auto& lines = read(slot_of(NameColumn::line), head.functions);
  const std::string bytes(planes_.read_bytes(slot_of(NameColumn::text), head.text_bytes));
  TextCutter cutter(bytes, where);
  std::vector<std::string_view> texts{{}};
  for (std::uint32_t i = 0; i < head.texts; ++i) texts.push_back(cutter.take(lengths[i]));
  std::uint64_t frame = head.first_frame;
  std::size_t at = 0;
  std::vector<NamedFunction> functions;
  for (std::uint32_t i = 0; i < head.frames; ++i) {
    if (frames[i] > stacks.frames().size()) fail(where, "a stack frame is named that does not exist");
    frame += frames[i];
    if (frame >= stacks.frames().size()) fail(where, "a stack frame is named that does not exist");
    if (counts[i] == 0 || counts[i] > head.functions - at) fail(where, "a stack frame claims too many functions");
    functions.clear();
    for (std::uint64_t f = 0; f < counts[i]; ++f, ++at) {
      if (names[at] >= texts.size() || files[at] >= texts.size())
        fail(where, "a function has a text that does not exist");
      if (lines[at] > ~std::uint32_t{0}) fail(where, "a function has an impossible line");
      functions.push_back({texts[names[at]], texts[files[at]], static_cast<std::uint32_t>(lines[at])});
    }
    stacks.set_names(static_cast<std::uint32_t>(frame), functions);
  }
}

}  // namespace blockyard::journal
