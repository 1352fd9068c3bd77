#include "journal/text_parser.hpp"

#include <bit>
#include <charconv>

namespace blockyard::journal {
namespace {

template <typename Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

/// Cuts the first blank-separated word off `text`.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace

void StackLines::add_to(Stacks& stacks) const {
  for (const Module& module : modules) stacks.add_module(module);
  for (const auto& [module, ns] : unmapped) stacks.set_unmapped(module, ns);
  for (const Frame& frame : frames) stacks.intern_frame(frame.module, frame.address);
  for (const Node& node : nodes) stacks.intern_node(node.parent, node.frame);
  std::vector<NamedFunction> functions;
  for (std::size_t i = 0; i < names.size(); ++i) {
    functions.push_back({names[i].name, names[i].file, names[i].line});
    if (i + 1 < names.size() && names[i + 1].frame == names[i].frame) continue;
    stacks.set_names(names[i].frame, functions);
    functions.clear();
  }
}

TextParser::TextParser(std::unique_ptr<Input> input, std::string path) : lines_(std::move(input), std::move(path)) {
  header_.preamble_events = preamble_unsaid;
  header_.has_addresses = true;
  header_.names.emplace_back();
}

void TextParser::next(Chunk& chunk) {
  chunk_ = &chunk;
  chunk.clear();
  for (std::string_view line; chunk.records.size() < chunk_records;) {
    if (!lines_.next(line)) {
      chunk.last = true;
      if (lines_.is_cut() && !has_records_ && chunk.records.empty()) throw Error(cut_before_events(lines_.path()));
      if (realloc_free_ || pending_) chunk.torn = true;
      break;
    }
    if (lines_.is_ended()) {
      parse_event(line);
    } else if (!parse_last(line)) {
      chunk.torn = true;
    }
  }
  chunk.cut = lines_.is_cut();
  if (chunk.torn || (chunk.cut && chunk.last)) {
    chunk.last = true;
    changed().cut_at_end = true;
  }
  if (!chunk.records.empty()) latest_ns_ = chunk.records.back().time_ns;
  has_records_ |= !chunk.records.empty();
  chunk.bytes_read = lines_.input().bytes_read();
  chunk.annotated = annotated_;
  if (header_changed_) {
    chunk.header = std::make_shared<Header>(header_);
    header_changed_ = false;
  }
  chunk.stacks = std::move(stack_lines_);
}

/// The text's last line, which has no newline. False when it is no whole event: cut numbers are smaller ones, so a time
/// before the last one's is cut, too.
bool TextParser::parse_last(std::string_view line) {
  auto& records = chunk_->records;
  const std::size_t had = records.size();
  const std::uint64_t before = had != 0 ? records.back().time_ns : latest_ns_;
  const std::size_t threads = header_.threads.size();
  try {
    parse_event(line);
  } catch (const Error&) {
    if (had == 0 && !has_records_) throw;
    records.resize(had);
    header_.threads.resize(threads);
    return false;
  }
  if (records.size() == had || records.back().time_ns >= before) return true;
  records.pop_back();
  header_.threads.resize(threads);
  return false;
}

void TextParser::parse_event(std::string_view line) {
  if (line.empty()) return;
  Fields at(lines_, line);
  Record record{};
  record.extra = no_extra;
  record.line = lines_.number();
  if (at.take("a")) {
    record.kind = Kind::allocate;
    at.skip_blanks("the size");
    record.size = at.decimal("the size");
    if (record.size > most_block_bytes) at.fail("it " + asks_too_much(record.size));
  } else if (at.take("f")) {
    record.kind = Kind::free;
  } else if (line.front() == '#') {
    parse_comment(at);
    return;
  } else {
    at.fail("a line begins with 'a' (an allocation: a SIZE PTR THREAD NS), 'f' (a free: f PTR THREAD NS) or '#'");
  }
  at.skip_blanks("the pointer");
  record.address = at.hexadecimal("the pointer");
  if (record.address == 0) at.fail("the pointer is 0; a failed allocation and free(NULL) have no line in a journal");
  at.skip_blanks("the thread");
  record.thread = thread_of(at.decimal("the thread"));
  at.skip_blanks("the time");
  record.time_ns = at.decimal("the time");
  at.expect_end("the time");
  if (pending_ || realloc_free_) {
    add_record(record, at);
  } else {
    chunk_->records.push_back(record);
  }
}

// An event described by # lines.
void TextParser::add_record(Record record, const Fields& line) {
  if (pending_kind_ == Kind::reallocate && !realloc_free_) {
    if (record.kind != Kind::free) line.fail("the free of a realloc was expected after its # lines");
    realloc_free_ = record;
    return;
  }
  if (record.kind == Kind::free && pending_kind_ != Kind::allocate)
    line.fail("an allocation was expected after its # lines");
  if (realloc_free_) {
    if (record.thread != realloc_free_->thread || record.time_ns != realloc_free_->time_ns) {
      line.fail("a realloc's two lines must name the same thread and time");
    }
    pending_->old_address = realloc_free_->address;
  }
  if (record.kind == Kind::allocate) record.kind = pending_kind_;
  record.extra = static_cast<std::uint32_t>(chunk_->extras.size());
  chunk_->extras.push_back(*pending_);
  chunk_->records.push_back(record);
  pending_.reset();
  pending_kind_ = Kind::allocate;
  realloc_free_.reset();
}

std::uint32_t TextParser::thread_of(std::uint64_t id) {
  if (id == last_thread_id_ && last_thread_ != no_extra) return last_thread_;
  const auto [place, is_new] = threads_.try_emplace(id, static_cast<std::uint32_t>(header_.threads.size()));
  if (is_new) changed().threads.push_back({id, {}});
  last_thread_id_ = id;
  last_thread_ = place->second;
  return last_thread_;
}

Header& TextParser::changed() {
  header_changed_ = true;
  return header_;
}

void TextParser::parse_comment(Fields& line) {
  std::string_view text = line.line();
  if (lines_.number() == 1 && text == text_signature) {
    annotated_ = true;
    return;
  }
  if (!annotated_ || !text.starts_with("# ")) return;
  text.remove_prefix(2);
  const std::string_view keyword = take_word(text);
  parse_note(keyword, text, line);
}

void TextParser::parse_note(std::string_view keyword, std::string_view rest, const Fields& line) {
  const auto number = [&](auto& value) {
    if (!parse_number(take_word(rest), value))
      line.fail("a number was expected after '# " + std::string(keyword) + "'");
  };
  const auto pending = [this]() -> Extra& { return pending_ ? *pending_ : pending_.emplace(); };
  const auto tag = [&](Extra& extra) {
    number(extra.tag);
    if (extra.tag >= header_.names.size()) line.fail("the tag has no '# name' line");
  };
  const auto site = [&](Extra& extra) {
    number(extra.site);
    if (extra.site >= stacks_.nodes().size()) line.fail("the call stack has no '# node' line");
  };
  const auto mark = [&](Kind kind) {
    if (pending_) line.fail("the event that the # lines before describe is missing");
    Extra extra;
    if (kind == Kind::phase_mark) number(extra.tag);
    if (kind == Kind::phase_mark && extra.tag >= header_.names.size()) line.fail("the phase has no '# name' line");
    std::uint64_t thread = 0;
    Record record{};
    record.kind = kind;
    record.line = lines_.number();
    number(thread);
    number(record.time_ns);
    record.thread = thread_of(thread);
    record.extra = static_cast<std::uint32_t>(chunk_->extras.size());
    if (kind == Kind::frame_mark && !rest.empty()) tag(extra);
    if (!rest.empty()) site(extra);
    chunk_->extras.push_back(extra);
    chunk_->records.push_back(record);
  };
  if (keyword == "zeroed") {
    pending();
    pending_kind_ = Kind::allocate_zeroed;
  } else if (keyword == "aligned") {
    number(pending().alignment);
    if (!std::has_single_bit(pending_->alignment)) line.fail("an alignment is a power of two");
    pending_kind_ = Kind::allocate_aligned;
  } else if (keyword == "realloc") {
    number(pending().duration_ns);
    pending_kind_ = Kind::reallocate;
  } else if (keyword == "tag") {
    tag(pending());
  } else if (keyword == "site") {
    site(pending());
  } else if (keyword == "frame") {
    mark(Kind::frame_mark);
  } else if (keyword == "phase") {
    mark(Kind::phase_mark);
  } else if (keyword == "thread") {
    std::uint64_t named = 0;
    std::uint64_t id = 0;
    number(named);
    number(id);
    const std::uint32_t index = thread_of(named);
    changed().threads[index] = {id, unescape(rest)};
  } else if (keyword == "program") {
    changed().program = unescape(rest);
  } else if (keyword == "argument") {
    changed().command.push_back(unescape(rest));
  } else if (keyword == "machine") {
    changed().machine = unescape(rest);
  } else if (keyword == "recorder") {
    changed().recorder = unescape(rest);
  } else if (keyword == "allocator") {
    changed().allocator = unescape(rest);
  } else if (keyword == "unseen") {
    changed().unseen.push_back(unescape(rest));
  } else if (keyword == "repaired") {
    changed().repairs.push_back(unescape(rest));
  } else if (keyword == "threads-unknown") {
    changed().threads_known = false;
  } else if (keyword == "started-at") {
    changed().started_at = unescape(rest);
  } else if (keyword == "ticks-per-ns") {
    number(changed().ticks_per_ns);
  } else if (keyword == "preamble") {
    number(changed().preamble_events);
  } else if (keyword == "unpaced") {
    changed().paced = false;
  } else if (keyword == "cut-at-end") {
    changed().cut_at_end = true;
  } else if (keyword == "addresses") {
    changed().has_addresses = rest == "kept";
  } else if (keyword == "name") {
    changed().names.push_back(unescape(rest));
  } else {
    parse_stack_note(keyword, rest, line);
  }
}

// Other keywords are comments.
void TextParser::parse_stack_note(std::string_view keyword, std::string_view rest, const Fields& line) {
  const bool known = keyword == "module" || keyword == "unmapped" || keyword == "address" || keyword == "stack-end" ||
                     keyword == "node" || keyword == "function" || keyword == "file";
  if (!known) return;
  const auto expect = [&](bool right, const char* what) {
    if (!right) line.fail(std::string(what) + " was expected in '# " + std::string(keyword) + "'");
  };
  const auto number = [&](auto& value) { expect(parse_number(take_word(rest), value), "a number"); };
  const auto address = [&](std::uint64_t& value) {
    constexpr int hexadecimal = 16;
    const std::string_view word = take_word(rest);
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value, hexadecimal);
    expect(problem == std::errc() && end == word.data() + word.size(), "a hexadecimal number");
  };
  const auto index_or_none = [&](std::uint32_t& value) {
    if (!rest.starts_with("- ") && rest != "-") return number(value);
    take_word(rest);
  };
  if (!stack_lines_) stack_lines_ = std::make_shared<StackLines>();
  StackLines& lines = *stack_lines_;
  try {
    if (keyword == "module") {
      Module module;
      address(module.begin);
      address(module.end);
      address(module.bias);
      number(module.mapped_ns);
      module.build_id = take_word(rest);
      if (module.build_id == "-") module.build_id.clear();
      module.path = unescape(rest);
      stacks_.add_module(module);
      lines.modules.push_back(std::move(module));
    } else if (keyword == "unmapped") {
      std::uint32_t module = 0;
      std::uint64_t ns = 0;
      number(module);
      number(ns);
      stacks_.set_unmapped(module, ns);
      lines.unmapped.emplace_back(module, ns);
    } else if (keyword == "address" || keyword == "stack-end") {
      Frame frame;
      if (keyword == "stack-end") {
        frame.module = end_marker;
        number(frame.address);
      } else {
        index_or_none(frame.module);
        address(frame.address);
      }
      const std::size_t index = stacks_.frames().size();
      if (stacks_.intern_frame(frame.module, frame.address) != index) line.fail("this address was there before");
      lines.frames.push_back(frame);
    } else if (keyword == "node") {
      Node node;
      index_or_none(node.parent);
      number(node.frame);
      const std::size_t index = stacks_.nodes().size();
      if (stacks_.intern_node(node.parent, node.frame) != index) line.fail("this call stack was there before");
      lines.nodes.push_back(node);
    } else if (keyword == "function") {
      StackLines::Named named{};
      number(named.frame);
      number(named.line);
      if (named.frame >= stacks_.frames().size()) line.fail("the function has no '# address' line");
      named.name = unescape(rest);
      lines.names.push_back(std::move(named));
    } else {
      if (lines.names.empty()) line.fail("the '# function' line that the file belongs to is missing");
      lines.names.back().file = unescape(rest);
    }
  } catch (const Error& error) {
    const std::string_view what = error.what();
    if (what.starts_with(lines_.path() + ", line ")) throw;
    line.fail(std::string(what));
  }
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    out += c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return out;
}

}  // namespace blockyard::journal
