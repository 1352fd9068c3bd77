#include "journal/text_writer.hpp"

#include <array>
#include <charconv>

#include "journal/text_parser.hpp"

namespace blockyard::journal {

namespace {
constexpr std::size_t flush_bytes = 1U << 16;
}  // namespace

TextWriter::TextWriter(std::unique_ptr<ByteSink> sink, const Header& header, const Stacks& stacks, TextStyle style)
    : sink_(std::move(sink)), stacks_(stacks), style_(style), pointers_(header.has_addresses) {
  if (!style_.notes) {
    introduce(header);
    return;
  }
  text_ += text_signature;
  text_ += '\n';
  note("program", escape(header.program));
  for (const auto& argument : header.command) note("argument", escape(argument));
  note("machine", escape(header.machine));
  note("recorder", escape(header.recorder));
  if (!header.allocator.empty()) note("allocator", escape(header.allocator));
  for (const auto& sentence : header.unseen) note("unseen", escape(sentence));
  note_repairs(header);
  note("started-at", escape(header.started_at));
  std::array<char, 32> number{};
  const auto end = std::to_chars(number.data(), number.data() + number.size(), header.ticks_per_ns).ptr;
  note("ticks-per-ns", {number.data(), static_cast<std::size_t>(end - number.data())});
  preamble_ = header.preamble_events;
  if (style_.preamble_known) note("preamble", preamble_);
  if (!header.paced) note("unpaced", "");
  if (!header.threads_known) note("threads-unknown", "");
  cut_at_end_ = header.cut_at_end;
  if (cut_at_end_) note("cut-at-end", "");
  note("addresses", header.has_addresses ? "kept" : "made-up");
  introduce(header);
}

void TextWriter::introduce(const Header& header) {
  for (std::size_t i = threads_.size(); i < header.threads.size(); ++i) {
    const Thread& thread = header.threads[i];
    threads_.add(thread);
    thread_names_.emplace_back();
    if (style_.notes) note_thread(i, thread);
  }
  for (; names_ < header.names.size(); ++names_) {
    if (style_.notes) note("name", escape(header.names[names_]));
  }
}

void TextWriter::introduce_stacks() {
  const StackCounts all = stacks_.counts();
  if (stacks_written_ == all) return;
  const auto begin = [this](std::string_view keyword) { (text_ += "# ") += keyword; };
  const auto decimal = [this](std::uint64_t value) { (text_ += ' ', put_number(value)); };
  const auto index_or_none = [&](std::uint32_t index, std::uint32_t none) {
    if (index == none) {
      text_ += " -";
    } else {
      decimal(index);
    }
  };
  const auto hex = [this](std::uint64_t value) { (text_ += ' ', put_hex(value)); };
  for (const Module& module : stacks_.modules().subspan(stacks_written_.modules)) {
    begin("module");
    for (const std::uint64_t address : {module.begin, module.end, module.bias}) hex(address);
    decimal(module.mapped_ns);
    text_ += ' ';
    text_ += module.build_id.empty() ? "-" : module.build_id;
    text_ += ' ';
    text_ += escape(module.path);
    end_line();
  }
  for (const Frame& frame : stacks_.frames().subspan(stacks_written_.frames)) {
    if (frame.module == end_marker) {
      begin("stack-end");
      decimal(frame.address);
    } else {
      begin("address");
      index_or_none(frame.module, no_module);
      hex(frame.address);
    }
    end_line();
  }
  for (const Node& node : stacks_.nodes().subspan(stacks_written_.nodes)) {
    begin("node");
    index_or_none(node.parent, no_node);
    decimal(node.frame);
    end_line();
  }
  for (const std::uint32_t module : stacks_.unmappings().subspan(stacks_written_.unmappings)) {
    begin("unmapped");
    decimal(module);
    decimal(stacks_.modules()[module].unmapped_ns);
    end_line();
  }
  stacks_written_ = all;
}

void TextWriter::note_names() {
  for (std::uint32_t frame = 0; frame < stacks_.counts().frames; ++frame) {
    for (const Function& function : stacks_.names(frame)) {
      text_ += "# function ";
      put_number(frame);
      text_ += ' ';
      put_number(function.line);
      text_ += ' ';
      text_ += escape(stacks_.text(function.name));
      end_line();
      if (function.file != 0) note("file", escape(stacks_.text(function.file)));
    }
  }
}

void TextWriter::end_line() {
  text_ += '\n';
  if (text_.size() < flush_bytes) return;
  sink_->write(text_);
  text_.clear();
}

void TextWriter::note_thread(std::size_t index, const Thread& thread) {
  note("thread", std::to_string(threads_[index]) + ' ' + std::to_string(thread.id) + ' ' + escape(thread.name));
  thread_names_[index] = thread.name;
}

void TextWriter::note_repairs(const Header& header) {
  for (; repairs_ < header.repairs.size(); ++repairs_) note("repaired", escape(header.repairs[repairs_]));
}

void TextWriter::add(const Event& event, const Header& header) {
  if (header.threads.size() != threads_.size() || header.names.size() > names_) introduce(header);
  if (style_.notes) introduce_stacks();
  if (event.kind == Kind::frame_mark || event.kind == Kind::phase_mark) {
    if (style_.notes) mark(event);
  } else {
    if (style_.notes) {
      if (event.kind == Kind::allocate_zeroed) note("zeroed", "");
      if (event.kind == Kind::allocate_aligned) note("aligned", event.alignment);
      if (event.kind == Kind::reallocate) note("realloc", event.duration_ns);
      if (event.tag != 0) note("tag", event.tag);
      if (event.site != no_site) note("site", event.site);
    }
    if (takes_block(event.kind)) {
      const std::uint64_t gone = event.kind == Kind::free ? event.block : event.old_block;
      put_line('f', 0, pointers_.taken(gone), event.thread, event.time_ns);
    }
    if (gives_block(event.kind)) put_line('a', event.size, pointers_.given(event), event.thread, event.time_ns);
  }
  if (text_.size() >= flush_bytes) {
    sink_->write(text_);
    text_.clear();
  }
}

void TextWriter::mark(const Event& event) {
  text_ += event.kind == Kind::frame_mark ? "# frame " : "# phase ";
  if (event.kind == Kind::phase_mark) {
    put_number(event.tag);
    text_ += ' ';
  }
  put_number(threads_[event.thread]);
  text_ += ' ';
  put_number(event.time_ns);
  const bool has_site = event.site != no_site;
  if (event.kind == Kind::frame_mark && (event.tag != 0 || has_site)) {
    text_ += ' ';
    put_number(event.tag);
  }
  if (has_site) {
    text_ += ' ';
    put_number(event.site);
  }
  text_ += '\n';
}

void TextWriter::finish(const Header& header, std::vector<std::string>&) {
  if (style_.notes) {
    introduce(header);
    introduce_stacks();
    note_names();
    for (std::size_t i = 0; i < header.threads.size(); ++i) {
      if (header.threads[i].name != thread_names_[i]) note_thread(i, header.threads[i]);
    }
    if (style_.preamble_known && header.preamble_events != preamble_) note("preamble", header.preamble_events);
    note_repairs(header);
    if (header.cut_at_end && !cut_at_end_) note("cut-at-end", "");
  }
  sink_->write(text_);
  text_.clear();
  sink_->finish();
}

void TextWriter::put_line(char kind, std::uint64_t size, std::uint64_t address, std::uint32_t thread,
                          std::uint64_t time_ns) {
  text_ += kind;
  text_ += ' ';
  if (kind == 'a') {
    put_number(size);
    text_ += ' ';
  }
  put_hex(address);
  text_ += ' ';
  put_number(threads_[thread]);
  text_ += ' ';
  put_number(time_ns);
  text_ += '\n';
}

void TextWriter::put_number(std::uint64_t value) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text_.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void TextWriter::put_hex(std::uint64_t value) {
  std::array<char, 16> digits;
  for (std::size_t i = digits.size(); i-- > 0; value >>= 4) digits[i] = "0123456789ABCDEF"[value & 15];
  text_.append(digits.data(), digits.size());
}

void TextWriter::note(std::string_view keyword, std::string_view text) {
  text_ += "# ";
  text_ += keyword;
  if (!text.empty()) {
    text_ += ' ';
    text_ += text;
  }
  text_ += '\n';
}

void TextWriter::note(std::string_view keyword, std::uint64_t value) {
  text_ += "# ";
  text_ += keyword;
  text_ += ' ';
  put_number(value);
  text_ += '\n';
}

}  // namespace blockyard::journal
