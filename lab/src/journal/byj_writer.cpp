// Writer: takes events and writes a .byj, with one write() for each section so that a crash leaves whole sections.
#include <bit>
#include <cerrno>
#include <cstring>
#include <future>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "journal/block_encoder.hpp"
#include "journal/format.hpp"
#include "journal/header_codec.hpp"
#include "journal/last_error.hpp"
#include "journal/stack_codec.hpp"
#include "journal/system.hpp"
#include "journal/writer.hpp"

namespace blockyard::journal {

struct Writer::State {
  std::string shown;          ///< the file's name in messages
  bool is_temporary = false;  ///< the caller that gave another name removes an incomplete file
  int file = -1;
  std::uint64_t offset = 0;
  std::uint64_t events = 0;
  std::uint64_t blocks = 0;
  std::uint64_t time_ns = 0;
  bool keep_addresses = false;
  bool finished = false;
  Header header;
  Header written;  ///< what HEAD and the TABL sections have said so far
  std::unordered_map<std::string, std::uint32_t> name_index;
  Stacks stacks;
  StackCounts stacks_written;
  std::optional<StackEncoder> stack_encoder;  ///< most journals have no stacks
  bool is_version_2 = false;
  Index index;
  std::unique_ptr<BlockEncoder> encoder = std::make_unique<BlockEncoder>();
  // The block before, while a thread of its own compresses it.
  std::unique_ptr<BlockEncoder> full = std::make_unique<BlockEncoder>();
  std::future<void> encoded;
  std::string section;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::ptrdiff_t done = system::write_file(file, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        const std::string what = shown + ": writing failed at byte " + std::to_string(offset) + ": " + last_error();
        throw Error(is_temporary ? what : what + "; what was flushed before is readable");
      }
      offset += static_cast<std::uint64_t>(done);
      bytes.remove_prefix(static_cast<std::size_t>(done));
    }
  }

  void write_section(std::uint32_t type, std::string_view payload) {
    if (payload.size() > format::most_payload_bytes) throw Error(shown + ": a section would exceed 256 MiB");
    section.clear();
    format::put(section, format::seal(type, payload));
    section += payload;
    write(section);
  }

  // The version is in the file before what it announces.
  void need_version_2() {
    if (is_version_2) return;
    const auto version = format::version_with_stacks;
    if (!system::overwrite_in_file(file, format::version_offset, &version, sizeof version)) {
      throw Error(shown + " can't hold call stacks or tags: " + last_error() + "; name a file");
    }
    is_version_2 = true;
  }

  void write_changes() {
    const std::string changes = header_changes(written, header);
    if (!changes.empty()) {
      write_section(format::section_table, changes);
      written = header;
    }
    write_stacks();
  }

  void write_stacks() {
    if (stacks.counts() == stacks_written) return;
    need_version_2();
    if (!stack_encoder) stack_encoder.emplace();
    while (stacks.counts() != stacks_written) {
      index.stacks.push_back(offset);
      write_section(format::section_stacks, stack_encoder->tables(stacks, stacks_written));
    }
  }

  void write_names() {
    if (!stacks.has_functions()) return;
    for (std::uint32_t frame = 0; frame < stacks.counts().frames;) {
      const std::string& names = stack_encoder->names(stacks, frame);
      index.stacks.push_back(offset);
      write_section(format::section_names, names);
    }
  }

  void write_block(BlockEncoder& block) {
    const auto& head = block.head();
    index.blocks.push_back({offset, head.first_event, head.first_block, head.base_time_ns});
    write_section(format::section_block, block.payload());
  }

  void write_full_block() {
    if (!encoded.valid()) return;
    encoded.get();
    write_block(*full);
  }

  void end_full_block() {
    write_full_block();
    write_changes();
    std::swap(encoder, full);
    encoded = std::async(Compressor::launch,
                         [this] { full->encode(); });  // where no thread can be had, write_full_block() does it
    encoder->begin(events, blocks, time_ns);
  }

  void end_block() {
    write_full_block();
    if (encoder->empty()) return;
    write_changes();
    encoder->encode();
    write_block(*encoder);
    encoder->begin(events, blocks, time_ns);
  }
};

Writer::Writer(const std::string& path, const Header& header, bool overwrite, const std::string& shown)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.shown = shown.empty() ? path : shown;
  s.is_temporary = s.shown != path;
  s.header = header;
  if (s.header.names.empty()) s.header.names.emplace_back();
  for (std::uint32_t i = 0; i < s.header.names.size(); ++i) s.name_index.emplace(s.header.names[i], i);
  s.keep_addresses = header.has_addresses;
  s.file = system::create_file(path, overwrite);
  if (s.file < 0) {
    throw Error(errno == EEXIST ? s.shown + " exists already; name another file, or pass --force to overwrite it"
                                : s.shown + " can't be created: " + last_error());
  }
  std::string preface(format::magic.data(), format::magic.size());
  format::put(preface, format::version_without_stacks);
  format::put(preface, std::uint16_t{0});
  format::put(preface, format::known_features);
  s.write(preface);
  std::string fields;
  put_header(fields, s.header);
  s.write_section(format::section_head, fields);
  s.written = s.header;
  s.encoder->begin(0, 0, 0);
}

Writer::~Writer() {
  if (!state_ || state_->file < 0) return;
  try {
    finish();
  } catch (...) {  // a destructor has no way to report it; a call of finish() does
  }
  if (state_->file >= 0) system::close_file(state_->file);
}

std::uint32_t Writer::add_thread(const Thread& thread) {
  state_->header.threads.push_back(thread);
  return static_cast<std::uint32_t>(state_->header.threads.size() - 1);
}

void Writer::name_thread(std::uint32_t index, const std::string& name) {
  if (index >= state_->header.threads.size()) throw Error(state_->shown + ": a thread is named that was never added");
  state_->header.threads[index].name = name;
}

std::uint32_t Writer::intern_name(const std::string& name) {
  State& s = *state_;
  const auto [place, is_new] = s.name_index.try_emplace(name, static_cast<std::uint32_t>(s.header.names.size()));
  if (is_new) s.header.names.push_back(name);
  return place->second;
}

void Writer::add(const Event& event) {
  State& s = *state_;
  const auto refuse = [&s](const std::string& what) {
    throw Error(s.shown + ": event " + std::to_string(s.events) + " " + what);
  };
  if (event.time_ns < s.time_ns) refuse("is earlier than the event before it");
  if (event.thread >= s.header.threads.size()) refuse("names a thread that was never added");
  if (gives_block(event.kind)) {
    if (event.block != s.blocks)
      refuse("gives block " + std::to_string(event.block) + "; the next id is " + std::to_string(s.blocks));
    if (event.size > most_block_bytes) refuse(asks_too_much(event.size));
    if (event.kind == Kind::allocate_aligned && !std::has_single_bit(event.alignment)) {
      refuse("has an alignment of " + std::to_string(event.alignment) + ", which is no power of two");
    }
  }
  if (takes_block(event.kind) && ended_block(event) >= s.blocks) refuse("frees a block that was never given");
  if (event.tag >= s.header.names.size()) {
    refuse(event.kind == Kind::phase_mark ? "begins a phase that has no name" : "has a tag that has no name");
  }
  if (event.tag != 0 && event.kind != Kind::phase_mark) s.need_version_2();
  if (event.site != no_site && event.site >= s.stacks.nodes().size()) refuse("has a call stack that was never added");
  s.encoder->add(event, s.keep_addresses);
  s.time_ns = event.time_ns;
  ++s.events;
  if (gives_block(event.kind)) ++s.blocks;
  if (s.encoder->full()) s.end_full_block();
}

void Writer::flush() {
  state_->end_block();
  state_->write_changes();
}

Header& Writer::header() { return state_->header; }

Stacks& Writer::stacks() { return state_->stacks; }

std::uint64_t Writer::finish() {
  State& s = *state_;
  if (s.finished) return s.offset;
  s.finished = true;  // only once: after a failure the destructor must not try the full disk again
  s.header.has_addresses = s.keep_addresses;
  s.end_block();
  s.write_stacks();
  s.write_names();
  std::string footer;
  put_header(footer, s.header);
  format::put_field_value(footer, format::Field::totals, Totals{s.events, s.blocks});
  format::put_field(
      footer, format::Field::index,
      {reinterpret_cast<const char*>(s.index.blocks.data()), s.index.blocks.size() * sizeof(format::IndexEntry)});
  if (!s.index.stacks.empty()) {
    format::put_field(
        footer, format::Field::stack_index,
        {reinterpret_cast<const char*>(s.index.stacks.data()), s.index.stacks.size() * sizeof(std::uint64_t)});
  }
  const std::uint64_t footer_offset = s.offset;
  s.write_section(format::section_footer, footer);
  std::string tail;
  format::put(tail, footer_offset);
  tail.append(format::end_magic.data(), format::end_magic.size());
  s.write(tail);
  const int closed = system::close_file(s.file);
  s.file = -1;
  if (closed != 0) throw Error(s.shown + ": closing failed: " + last_error());
  return s.offset;
}

}  // namespace blockyard::journal
