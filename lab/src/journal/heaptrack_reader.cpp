#include "journal/heaptrack_reader.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace blockyard::journal {
namespace {

constexpr std::size_t batch = 4096;
constexpr std::uint64_t newest_file_version = 3;  // heaptrack 1.3 to 1.5
constexpr std::uint64_t ns_per_stamp = 1'000'000;
constexpr std::size_t shown_bytes = 60;

/// All of heaptrack's numbers are hexadecimal. Cuts one off `fields`; false when there is none.
bool take_number(std::string_view& fields, std::uint64_t& value) {
  constexpr int hexadecimal = 16;
  const auto [end, problem] = std::from_chars(fields.data(), fields.data() + fields.size(), value, hexadecimal);
  if (problem != std::errc()) return false;
  fields.remove_prefix(static_cast<std::size_t>(end - fields.data()));
  if (fields.empty()) return true;
  if (fields.front() != ' ') return false;
  fields.remove_prefix(1);
  return true;
}

/// heaptrack writes this line (page size, pages) right after the command line.
bool is_system_line(std::string_view line) {
  if (!line.starts_with("I ")) return false;
  line.remove_prefix(2);
  std::uint64_t page_bytes = 0;
  std::uint64_t pages = 0;
  return take_number(line, page_bytes) && take_number(line, pages) && line.empty();
}

}  // namespace

bool looks_like_heaptrack(std::string_view first_bytes) { return first_bytes.starts_with("v "); }

HeaptrackSource::HeaptrackSource(std::unique_ptr<Input> input, const std::string& path)
    : path_(path), lines_(std::move(input), path) {
  header_.paced = false;
  header_.names.emplace_back();
  header_.threads.push_back({1, {}});
  header_.recorder = "heaptrack";
  header_.cut_at_end = false;
  std::string_view line;
  if (!lines_.next(line) || !line.starts_with("v ")) throw Error(path_ + " is no heaptrack recording");
  std::string_view fields = line.substr(2);
  std::uint64_t program_version = 0;
  std::uint64_t file_version = 0;
  if (!take_number(fields, program_version)) fail(line, "heaptrack's version was expected");
  if (!fields.empty() && !take_number(fields, file_version)) fail(line, "heaptrack's file version was expected");
  if (file_version > newest_file_version) {
    fail(line, "this heaptrack file version is newer than the ones blockyard reads (up to 3)");
  }
  for (const unsigned shift : {16U, 8U, 0U}) {
    header_.recorder += shift == 16 ? ' ' : '.';
    header_.recorder += std::to_string(program_version >> shift & 0xFF);
  }
  // The header must be complete before the first event is requested.
  while (events_.empty() && (header_.program.empty() || in_command_) && lines_.next(line)) read_line(line);
}

void HeaptrackSource::fail(std::string_view line, const char* what) const {
  std::string shown(line.substr(0, shown_bytes));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  throw Error(path_ + ", line " + std::to_string(lines_.number()) + ": " + what + ": \"" + shown + "\"");
}

void HeaptrackSource::refuse_beyond_any_process(std::uint64_t size, std::string_view line) const {
  if (size > most_block_bytes) fail(line, ("it " + asks_too_much(size)).c_str());
}

std::span<const Event> HeaptrackSource::next() {
  if (!primed_) events_.clear();
  primed_ = false;
  std::string_view line;
  while (events_.size() < batch) {
    if (!lines_.next(line)) {
      conclude();
      break;
    }
    read_line(line);
  }
  return events_;
}

void HeaptrackSource::read_line(std::string_view line) {
  if (in_command_) in_command_ = !is_system_line(line);
  if (line.empty() || in_command_) return;
  const char kind = line.front();
  std::string_view fields = line.substr(std::min<std::size_t>(2, line.size()));
  switch (kind) {
    case '+':
      allocate(fields, line);
      break;
    case '-':
      release(fields, line);
      break;
    case 'a': {
      AllocationKind& added = kinds_.emplace_back();
      if (!take_number(fields, added.size)) fail(line, "an allocation's size was expected");
      refuse_beyond_any_process(added.size, line);
      break;
    }
    case 'c': {
      std::uint64_t stamp = 0;
      if (!take_number(fields, stamp) || stamp > ~std::uint64_t{0} / ns_per_stamp / 2)
        fail(line, "a time stamp was expected");
      time_ns_ = std::max(time_ns_, stamp * ns_per_stamp);
      break;
    }
    case 'X': {
      in_command_ = true;
      std::istringstream words{std::string(fields)};
      header_.command.clear();
      for (std::string word; words >> word;) header_.command.push_back(word);
      if (!header_.command.empty()) header_.program = header_.command.front();
      break;
    }
    // Executable, strings, instruction pointers, traces, modules, resident set, page size, attached, suppressions,
    // comments.
    case 'x':
    case 's':
    case 'i':
    case 't':
    case 'm':
    case 'R':
    case 'I':
    case 'A':
    case 'S':
    case '#':
      break;
    default:
      fail(line, "heaptrack writes no line like this");
  }
}

std::uint64_t HeaptrackSource::push(Kind kind, std::uint64_t size, std::uint64_t block, std::uint64_t address) {
  Event event;
  event.kind = kind;
  event.size = size;
  event.block = block;
  event.address = address;
  event.time_ns = ++time_ns_;
  events_.push_back(event);
  return block;
}

// Raw: + SIZE TRACE POINTER. Interpreted: + INDEX of an `a` line.
void HeaptrackSource::allocate(std::string_view fields, std::string_view line) {
  std::uint64_t first = 0;
  std::uint64_t trace = 0;
  std::uint64_t address = 0;
  if (!take_number(fields, first)) fail(line, "a number was expected");
  if (fields.empty()) {
    if (first >= kinds_.size()) fail(line, "it names an allocation that no 'a' line described");
    kinds_[first].live.push_back(push(Kind::allocate, kinds_[first].size, next_block_++, 0));
    return;
  }
  if (!take_number(fields, trace) || !take_number(fields, address) || address == 0) {
    fail(line, "a trace and a pointer were expected behind the size");
  }
  refuse_beyond_any_process(first, line);
  std::uint64_t stale = 0;
  if (addresses_.take(address, stale)) {
    ++unseen_frees_;
    push(Kind::free, 0, stale, 0);
  }
  addresses_.insert(address, push(Kind::allocate, first, next_block_++, address));
}

// Raw: - POINTER. Interpreted: - INDEX of an `a` line. A recording has `a` lines or it is raw.
void HeaptrackSource::release(std::string_view fields, std::string_view line) {
  std::uint64_t named = 0;
  if (!take_number(fields, named)) fail(line, "a number was expected");
  std::uint64_t block = 0;
  if (kinds_.empty()) {
    if (named == 0 || !addresses_.take(named, block)) {
      ++unseen_allocations_;
      return;
    }
  } else {
    if (named >= kinds_.size()) fail(line, "it names an allocation that no 'a' line described");
    auto& live = kinds_[named].live;
    if (live.empty()) fail(line, "a free of nothing: no block of this allocation is live");
    block = live.back();
    live.pop_back();
  }
  push(Kind::free, 0, block, 0);
}

void HeaptrackSource::conclude() {
  if (concluded_) return;
  concluded_ = true;
  notes_.emplace_back("heaptrack keeps no threads and no times of single events: replay it as fast as possible");
  if (unseen_allocations_ != 0) {
    notes_.push_back(std::to_string(unseen_allocations_) +
                     " frees of blocks that heaptrack never saw allocated were left out");
  }
  if (unseen_frees_ != 0) {
    notes_.push_back(std::to_string(unseen_frees_) +
                     " blocks whose free heaptrack never saw go where their address is given again");
  }
}

}  // namespace blockyard::journal
