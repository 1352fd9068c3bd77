#include "journal/log_parser.hpp"

#include <algorithm>
#include <bit>

namespace blockyard::journal {

LogParser::LogParser(std::unique_ptr<Input> input, std::string path, std::string recorder)
    : lines_(std::move(input), std::move(path)) {
  header_.recorder = std::move(recorder);
  header_.has_addresses = true;
  header_.paced = false;
  header_.names.emplace_back();
}

void LogParser::next(Chunk& chunk) {
  chunk_ = &chunk;
  chunk.clear();
  for (std::string_view line; chunk.records.size() < chunk_records;) {
    const bool is_there = lines_.next(line);
    if (!is_there || !lines_.is_ended()) {
      end(chunk, is_there);
      break;
    }
    if (line.empty()) continue;
    Fields fields(lines_, line);
    parse(fields);
  }
  if (header_.paced) begin_at_first(chunk);
  has_records_ = has_records();
  chunk.bytes_read = lines_.input().bytes_read();
  if (header_changed_) chunk.header = std::make_shared<Header>(header_);
  header_changed_ = false;
  chunk.stacks = std::move(stack_lines_);
}

void LogParser::end(Chunk& chunk, bool torn) {
  chunk.last = true;
  chunk.torn = torn;
  chunk.cut = lines_.is_cut();
  if (!has_records()) {
    if (chunk.cut) throw Error(cut_before_events(lines_.path()));
    throw Error(lines_.path() + ": the log holds no event");
  }
  if (torn || chunk.cut) header().cut_at_end = true;
  conclude();
  if (failed_ != 0) {
    repair(std::to_string(failed_) + (failed_ == 1 ? " call that failed was" : " calls that failed were") +
           " left out");
  }
}

// The log's clock began earlier than the recording: it begins with the earliest event of the first chunk.
void LogParser::begin_at_first(Chunk& chunk) {
  if (!has_records_) {
    const auto earlier = [](const Record& a, const Record& b) { return a.time_ns < b.time_ns; };
    const auto first = std::min_element(chunk.records.begin(), chunk.records.end(), earlier);
    // At 1 ns: what stands at 0 in a text is its preamble.
    if (first != chunk.records.end()) begin_ns_ = std::max<std::uint64_t>(first->time_ns, 1) - 1;
  }
  for (Record& record : chunk.records) record.time_ns = std::max(record.time_ns, begin_ns_) - begin_ns_;
}

Header& LogParser::header() {
  header_changed_ = true;
  return header_;
}

void LogParser::on_thread(std::uint64_t id) {
  if (id == last_thread_id_ && thread_ != no_extra) return;
  const auto [place, is_new] = threads_.try_emplace(id, static_cast<std::uint32_t>(header_.threads.size()));
  if (is_new) header().threads.push_back({id, {}});
  last_thread_id_ = id;
  thread_ = place->second;
}

void LogParser::end_thread(std::uint64_t id) {
  threads_.erase(id);
  if (id == last_thread_id_) thread_ = no_extra;
}

void LogParser::push(Kind kind, std::uint64_t address, std::uint64_t size, const Extra& extra) {
  if (thread_ == no_extra) on_thread(1);
  Record record{};
  record.kind = kind;
  record.address = address;
  record.size = size;
  record.time_ns = header_.paced ? time_ns_ : ++time_ns_;
  record.line = lines_.number();
  record.thread = thread_;
  record.extra = no_extra;
  if (site_ != no_site || extra.old_address != 0 || extra.alignment != 0) {
    record.extra = static_cast<std::uint32_t>(chunk_->extras.size());
    chunk_->extras.push_back(extra);
    chunk_->extras.back().site = site_;
  }
  chunk_->records.push_back(record);
}

void LogParser::give(const Fields& line, Kind kind, std::uint64_t address, std::uint64_t size, Extra extra) {
  if (address == 0) return count_failed();
  if (size > most_block_bytes) line.fail("it " + asks_too_much(size));
  push(kind, address, size, extra);
}

void LogParser::allocate_zeroed(const Fields& line, std::uint64_t address, std::uint64_t count, std::uint64_t size) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = ~std::uint64_t{0};
  give(line, Kind::allocate_zeroed, address, bytes, {});
}

void LogParser::allocate_aligned(const Fields& line, std::uint64_t address, std::uint64_t alignment,
                                 std::uint64_t size) {
  constexpr std::uint64_t most_alignment = std::uint64_t{1} << 31;
  if (alignment > most_alignment) line.fail("an alignment is at most 2^31 bytes");
  Extra extra;
  extra.alignment = static_cast<std::uint32_t>(std::bit_ceil(alignment));
  give(line, Kind::allocate_aligned, address, size, extra);
}

void LogParser::reallocate(const Fields& line, std::uint64_t old, std::uint64_t address, std::uint64_t size,
                           std::uint64_t duration_ns) {
  if (old == 0) return allocate(line, address, size);
  if (address == 0 && size == 0) return free(old);
  Extra extra;
  extra.old_address = old;
  extra.duration_ns = duration_ns;
  give(line, Kind::reallocate, address, size, extra);
}

void LogParser::free(std::uint64_t address) {
  if (address != 0) push(Kind::free, address, 0, {});
}

std::uint32_t LogParser::make_site(const std::string& module, std::uint64_t address, const std::string& function) {
  if (!stack_lines_) stack_lines_ = std::make_shared<StackLines>();
  const auto modules = stacks_.modules();
  std::uint32_t index = 0;
  while (index < modules.size() && modules[index].path != module) ++index;
  if (index == modules.size()) {
    Module added;
    added.path = module;
    stacks_.add_module(added);
    stack_lines_->modules.push_back(std::move(added));
  }
  const auto counts = stacks_.counts();
  const std::uint32_t frame = stacks_.intern_frame(index, address);
  if (stacks_.counts().frames != counts.frames) {
    stack_lines_->frames.push_back({index, address});
    if (!function.empty()) stack_lines_->names.push_back({frame, 0, function, {}});
  }
  const std::uint32_t node = stacks_.intern_node(no_node, frame);
  if (stacks_.counts().nodes != counts.nodes) stack_lines_->nodes.push_back({no_node, frame});
  return node;
}

}  // namespace blockyard::journal
