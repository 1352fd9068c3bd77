#include "journal/header_codec.hpp"

namespace blockyard::journal {

using format::Field;

namespace {

std::uint64_t flags_of(const Header& header) {
  return (header.paced ? format::flag_paced : 0) | (header.has_addresses ? format::flag_addresses : 0) |
         (header.cut_at_end ? format::flag_cut_at_end : 0) | (header.threads_known ? 0 : format::flag_threads_unknown);
}

void put_thread(std::string& out, const Thread& thread) {
  std::string bytes;
  format::put(bytes, thread.id);
  format::put_field(out, Field::thread, bytes + thread.name);
}

void put_facts(std::string& out, const Header& header) {
  format::put_field_value(out, Field::ticks_per_ns, header.ticks_per_ns);
  format::put_field_value(out, Field::preamble_events, header.preamble_events);
  format::put_field_value(out, Field::flags, flags_of(header));
}

}  // namespace

void put_header(std::string& out, const Header& header) {
  format::put_field(out, Field::program, header.program);
  for (const auto& argument : header.command) format::put_field(out, Field::argument, argument);
  format::put_field(out, Field::machine, header.machine);
  format::put_field(out, Field::recorder, header.recorder);
  format::put_field(out, Field::started_at, header.started_at);
  if (!header.allocator.empty()) format::put_field(out, Field::allocator, header.allocator);
  if (!header.recording.empty()) format::put_field(out, Field::recording, header.recording);
  for (const auto& sentence : header.unseen) format::put_field(out, Field::unseen, sentence);
  for (const auto& sentence : header.repairs) format::put_field(out, Field::repair, sentence);
  put_facts(out, header);
  for (const auto& thread : header.threads) put_thread(out, thread);
  for (std::size_t i = 1; i < header.names.size(); ++i) format::put_field(out, Field::name, header.names[i]);
}

std::string header_changes(const Header& written, const Header& now) {
  std::string out;
  if (written.preamble_events != now.preamble_events || written.ticks_per_ns != now.ticks_per_ns ||
      flags_of(written) != flags_of(now)) {
    put_facts(out, now);
  }
  for (std::size_t i = 0; i < written.threads.size(); ++i) {
    if (written.threads[i].name == now.threads[i].name) continue;
    std::string bytes;
    format::put(bytes, static_cast<std::uint32_t>(i));
    format::put_field(out, Field::thread_name, bytes + now.threads[i].name);
  }
  for (std::size_t i = written.threads.size(); i < now.threads.size(); ++i) put_thread(out, now.threads[i]);
  for (std::size_t i = std::max<std::size_t>(written.names.size(), 1); i < now.names.size(); ++i) {
    format::put_field(out, Field::name, now.names[i]);
  }
  return out;
}

void apply_fields(std::string_view fields, Header& header, Totals* totals, Index* index, const std::string& where) {
  const auto fail = [&where](const char* what) { throw Error(where + ": " + what); };
  const auto need = [&fail](std::string_view bytes, std::size_t size) {
    if (bytes.size() < size) fail("a field is shorter than its kind needs; the file was damaged before it was sealed");
  };
  if (header.names.empty()) header.names.emplace_back();
  while (!fields.empty()) {
    constexpr std::size_t field_head = sizeof(std::uint16_t) + sizeof(std::uint32_t);
    if (fields.size() < field_head) fail("the fields end inside a field's head");
    const auto tag = static_cast<Field>(format::get<std::uint16_t>(fields, 0));
    const std::size_t length = format::get<std::uint32_t>(fields, sizeof(std::uint16_t));
    fields.remove_prefix(field_head);
    if (fields.size() < length) fail("a field is longer than the section that holds it");
    const std::string_view bytes = fields.substr(0, length);
    fields.remove_prefix(length);
    switch (tag) {
      case Field::program:
        header.program = bytes;
        break;
      case Field::argument:
        header.command.emplace_back(bytes);
        break;
      case Field::machine:
        header.machine = bytes;
        break;
      case Field::recorder:
        header.recorder = bytes;
        break;
      case Field::allocator:
        header.allocator = bytes;
        break;
      case Field::recording:
        header.recording = bytes;
        break;
      case Field::unseen:
        header.unseen.emplace_back(bytes);
        break;
      case Field::repair:
        header.repairs.emplace_back(bytes);
        break;
      case Field::started_at:
        header.started_at = bytes;
        break;
      case Field::ticks_per_ns:
        need(bytes, sizeof(double));
        header.ticks_per_ns = format::get<double>(bytes, 0);
        break;
      case Field::preamble_events:
        need(bytes, sizeof(std::uint64_t));
        header.preamble_events = format::get<std::uint64_t>(bytes, 0);
        break;
      case Field::flags: {
        need(bytes, sizeof(std::uint64_t));
        const auto flags = format::get<std::uint64_t>(bytes, 0);
        header.paced = (flags & format::flag_paced) != 0;
        header.has_addresses = (flags & format::flag_addresses) != 0;
        header.cut_at_end = (flags & format::flag_cut_at_end) != 0;
        header.threads_known = (flags & format::flag_threads_unknown) == 0;
        break;
      }
      case Field::thread:
        need(bytes, sizeof(std::uint64_t));
        header.threads.push_back(
            {format::get<std::uint64_t>(bytes, 0), std::string(bytes.substr(sizeof(std::uint64_t)))});
        break;
      case Field::name:
        header.names.emplace_back(bytes);
        break;
      case Field::thread_name: {
        need(bytes, sizeof(std::uint32_t));
        const std::size_t thread = format::get<std::uint32_t>(bytes, 0);
        if (thread >= header.threads.size()) fail("a thread is named that was never introduced");
        header.threads[thread].name = bytes.substr(sizeof(std::uint32_t));
        break;
      }
      case Field::totals:
        need(bytes, sizeof(Totals));
        if (totals != nullptr) *totals = format::get<Totals>(bytes, 0);
        break;
      case Field::index:
        if (bytes.size() % sizeof(format::IndexEntry) != 0) fail("the index does not consist of whole entries");
        if (index == nullptr) break;
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(format::IndexEntry)) {
          index->blocks.push_back(format::get<format::IndexEntry>(bytes, at));
        }
        break;
      case Field::stack_index:
        if (bytes.size() % sizeof(std::uint64_t) != 0) fail("the index does not consist of whole entries");
        if (index == nullptr) break;
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
          index->stacks.push_back(format::get<std::uint64_t>(bytes, at));
        }
        break;
    }
  }
}

}  // namespace blockyard::journal
