#include "journal/text_parser.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

namespace blockyard::journal {
namespace {

constexpr std::size_t buffer_bytes = 1U << 20;
constexpr std::size_t shown_bytes = 60;  // of a bad line, in a message

// Values of hexadecimal digits; 16 is none.
constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  for (auto& digit : digits) digit = 16;
  for (std::uint8_t i = 0; i < 10; ++i) digits[static_cast<std::size_t>('0') + i] = i;
  for (std::uint8_t i = 0; i < 6; ++i) {
    digits[static_cast<std::size_t>('a') + i] = static_cast<std::uint8_t>(10 + i);
    digits[static_cast<std::size_t>('A') + i] = static_cast<std::uint8_t>(10 + i);
  }
  return digits;
}
constexpr auto digits = make_digits();

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool ends_line(char c) { return c == '\n' || c == '\r'; }

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

// Every line in the buffer ends with a newline, so that the cursor needs no bound: no field contains one.
struct TextParser::Cursor {
  const TextParser& parser;
  const char* line;
  const char* at;

  void skip_blanks(const char* before) {
    if (!is_blank(*at)) parser.fail(line, std::string("a blank was expected before ") + before);
    do ++at;
    while (is_blank(*at));
  }
  std::uint64_t decimal(const char* what) {
    std::uint64_t value = 0;
    const char* const begin = at;
    for (unsigned digit; (digit = static_cast<unsigned>(*at - '0')) <= 9; ++at) value = value * 10 + digit;
    if (at == begin) parser.fail(line, std::string(what) + " (a decimal number) was expected");
    constexpr std::ptrdiff_t safe_digits = 19;
    if (at - begin > safe_digits && !parse_number({begin, static_cast<std::size_t>(at - begin)}, value)) {
      parser.fail(line, std::string(what) + " is beyond 64 bits");
    }
    return value;
  }
  std::uint64_t hexadecimal() {
    if (*at == '0' && (at[1] == 'x' || at[1] == 'X')) at += 2;
    std::uint64_t value = 0;
    const char* const begin = at;
    for (std::uint8_t digit; (digit = digits[static_cast<unsigned char>(*at)]) < 16; ++at) value = value << 4 | digit;
    if (at == begin) parser.fail(line, "the pointer (a hexadecimal number) was expected");
    constexpr std::ptrdiff_t most_digits = 16;
    if (at - begin > most_digits) {
      const char* significant = begin;
      while (*significant == '0') ++significant;
      if (at - significant > most_digits) parser.fail(line, "the pointer is beyond 64 bits");
    }
    if (value == 0) parser.fail(line, "the pointer is 0; a failed allocation and free(NULL) have no line in a journal");
    return value;
  }
  void end() {
    while (is_blank(*at)) ++at;
    if (*at == '\r') ++at;
    if (*at != '\n') parser.fail(line, "the end of the line was expected after the time");
    ++at;
  }
};

TextParser::TextParser(std::unique_ptr<Input> input, std::string path)
    : input_(std::move(input)), path_(std::move(path)), buffer_(buffer_bytes + 2) {
  input_->accept_cut();
  header_.preamble_events = preamble_unsaid;
  header_.has_addresses = true;
  header_.names.emplace_back();
}

void TextParser::fail(const char* line, const std::string& what) const {
  const char* end = line;
  while (!ends_line(*end)) ++end;
  std::string shown(line, std::min(static_cast<std::size_t>(end - line), shown_bytes));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  }
  throw Error(path_ + ", line " + std::to_string(line_) + ": " + what + ": \"" + shown + "\"");
}

// Moves the rest to the front, reads more, and finds the last whole line. False when nothing is left.
bool TextParser::refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
  filled_ -= begin_;
  begin_ = 0;
  while (!at_end_ && filled_ < buffer_bytes) {
    const std::size_t got = input_->read({buffer_.data() + filled_, buffer_bytes - filled_});
    if (got == 0) {
      at_end_ = true;
      is_cut_ = input_->is_cut();
      unended_ = filled_ != 0 && buffer_[filled_ - 1] != '\n';
      if (unended_) buffer_[filled_++] = '\n';
    }
    filled_ += got;
  }
  if (filled_ == 0) return false;
  const void* last = ::memrchr(buffer_.data(), '\n', filled_);
  if (last == nullptr) {
    throw Error(path_ + ", line " + std::to_string(line_ + 1) + ": the line is longer than 1 MiB; this is no journal");
  }
  end_ = static_cast<std::size_t>(static_cast<const char*>(last) - buffer_.data()) + 1;
  return true;
}

void TextParser::next(Chunk& chunk) {
  chunk_ = &chunk;
  chunk.records.clear();
  chunk.extras.clear();
  chunk.header.reset();
  chunk.stacks.reset();
  chunk.last = false;
  chunk.torn = false;
  while (chunk.records.size() < chunk_records) {
    if (begin_ == end_ && !refill()) {
      chunk.last = true;
      if (is_cut_ && !has_records_ && chunk.records.empty()) {
        throw Error(path_ + ": the compressed stream ends before the first event (the file was cut short)");
      }
      if (realloc_free_ || pending_) chunk.torn = true;
      break;
    }
    Cursor cursor{*this, buffer_.data() + begin_, buffer_.data() + begin_};
    const char* const stop = buffer_.data() + end_;
    while (cursor.at != stop && chunk.records.size() < chunk_records) {
      ++line_;
      cursor.line = cursor.at;
      if (unended_ && at_end_ && std::memchr(cursor.at, '\n', static_cast<std::size_t>(stop - cursor.at)) == stop - 1) {
        if (!parse_last(cursor)) chunk.torn = true;
        cursor.at = stop;
      } else {
        parse_event(cursor);
      }
    }
    begin_ = static_cast<std::size_t>(cursor.at - buffer_.data());
  }
  chunk.cut = is_cut_;
  if (chunk.torn || (chunk.cut && chunk.last)) {
    chunk.last = true;
    changed().cut_at_end = true;
  }
  if (!chunk.records.empty()) latest_ns_ = chunk.records.back().time_ns;
  has_records_ |= !chunk.records.empty();
  chunk.bytes_read = input_->bytes_read();
  chunk.annotated = annotated_;
  if (header_changed_) {
    chunk.header = std::make_shared<Header>(header_);
    header_changed_ = false;
  }
  chunk.stacks = std::move(stack_lines_);
}

/// The text's last line, which has no newline. False when it is no whole event: cut numbers are smaller ones, so a time
/// before the last one's is cut, too.
bool TextParser::parse_last(Cursor& at) {
  auto& records = chunk_->records;
  const std::size_t had = records.size();
  const std::uint64_t before = had != 0 ? records.back().time_ns : latest_ns_;
  const std::size_t threads = header_.threads.size();
  try {
    parse_event(at);
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

void TextParser::parse_event(Cursor& at) {
  Record record{};
  record.extra = no_extra;
  record.line = line_;
  switch (*at.at++) {
    case 'a':
      record.kind = Kind::allocate;
      at.skip_blanks("the size");
      record.size = at.decimal("the size");
      if (record.size > most_block_bytes) fail(at.line, "it " + asks_too_much(record.size));
      break;
    case 'f':
      record.kind = Kind::free;
      break;
    case '#': {
      const char* const newline = static_cast<const char*>(
          std::memchr(at.line, '\n', static_cast<std::size_t>(buffer_.data() + end_ - at.line)));
      std::string_view text(at.line, static_cast<std::size_t>(newline - at.line));
      if (text.ends_with('\r')) text.remove_suffix(1);
      at.at = newline + 1;
      parse_comment(text, at.line);
      return;
    }
    case '\r':
      if (*at.at == '\n') ++at.at;
      return;
    case '\n':
      return;
    default:
      fail(at.line,
           "a line begins with 'a' (an allocation: a SIZE PTR THREAD NS), 'f' (a free: f PTR THREAD NS) or '#'");
  }
  at.skip_blanks("the pointer");
  record.address = at.hexadecimal();
  at.skip_blanks("the thread");
  record.thread = thread_of(at.decimal("the thread"));
  at.skip_blanks("the time");
  record.time_ns = at.decimal("the time");
  at.end();
  if (pending_ || realloc_free_) {
    add_record(record, at.line);
  } else {
    chunk_->records.push_back(record);
  }
}

// An event described by # lines.
void TextParser::add_record(Record record, const char* line) {
  if (pending_kind_ == Kind::reallocate && !realloc_free_) {
    if (record.kind != Kind::free) fail(line, "the free of a realloc was expected after its # lines");
    realloc_free_ = record;
    return;
  }
  if (record.kind == Kind::free && pending_kind_ != Kind::allocate)
    fail(line, "an allocation was expected after its # lines");
  if (realloc_free_) {
    if (record.thread != realloc_free_->thread || record.time_ns != realloc_free_->time_ns) {
      fail(line, "a realloc's two lines must name the same thread and time");
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

void TextParser::parse_comment(std::string_view text, const char* line) {
  if (line_ == 1 && text == text_signature) {
    annotated_ = true;
    return;
  }
  if (!annotated_ || !text.starts_with("# ")) return;
  text.remove_prefix(2);
  const std::string_view keyword = take_word(text);
  parse_note(keyword, text, line);
}

void TextParser::parse_note(std::string_view keyword, std::string_view rest, const char* line) {
  const auto number = [&](auto& value) {
    if (!parse_number(take_word(rest), value))
      fail(line, "a number was expected after '# " + std::string(keyword) + "'");
  };
  const auto pending = [this]() -> Extra& { return pending_ ? *pending_ : pending_.emplace(); };
  const auto tag = [&](Extra& extra) {
    number(extra.tag);
    if (extra.tag >= header_.names.size()) fail(line, "the tag has no '# name' line");
  };
  const auto site = [&](Extra& extra) {
    number(extra.site);
    if (extra.site >= stacks_.nodes().size()) fail(line, "the call stack has no '# node' line");
  };
  const auto mark = [&](Kind kind) {
    if (pending_) fail(line, "the event that the # lines before describe is missing");
    Extra extra;
    if (kind == Kind::phase_mark) number(extra.tag);
    if (kind == Kind::phase_mark && extra.tag >= header_.names.size()) fail(line, "the phase has no '# name' line");
    std::uint64_t thread = 0;
    Record record{};
    record.kind = kind;
    record.line = line_;
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
    if (!std::has_single_bit(pending_->alignment)) fail(line, "an alignment is a power of two");
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
void TextParser::parse_stack_note(std::string_view keyword, std::string_view rest, const char* line) {
  const bool known = keyword == "module" || keyword == "unmapped" || keyword == "address" || keyword == "stack-end" ||
                     keyword == "node" || keyword == "function" || keyword == "file";
  if (!known) return;
  const auto expect = [&](bool right, const char* what) {
    if (!right) fail(line, std::string(what) + " was expected in '# " + std::string(keyword) + "'");
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
      if (stacks_.intern_frame(frame.module, frame.address) != index) fail(line, "this address was there before");
      lines.frames.push_back(frame);
    } else if (keyword == "node") {
      Node node;
      index_or_none(node.parent);
      number(node.frame);
      const std::size_t index = stacks_.nodes().size();
      if (stacks_.intern_node(node.parent, node.frame) != index) fail(line, "this call stack was there before");
      lines.nodes.push_back(node);
    } else if (keyword == "function") {
      StackLines::Named named{};
      number(named.frame);
      number(named.line);
      if (named.frame >= stacks_.frames().size()) fail(line, "the function has no '# address' line");
      named.name = unescape(rest);
      lines.names.push_back(std::move(named));
    } else {
      if (lines.names.empty()) fail(line, "the '# function' line that the file belongs to is missing");
      lines.names.back().file = unescape(rest);
    }
  } catch (const Error& error) {
    const std::string_view what = error.what();
    if (what.starts_with(path_ + ", line ")) throw;
    fail(line, std::string(what));
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
