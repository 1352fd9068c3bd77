#include "journal/heaptrack_reader.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace blockyard::journal {
namespace {

constexpr std::size_t batch = 4096;
constexpr std::uint64_t newest_file_version = 3;  // heaptrack 1.3 to 1.5
constexpr std::uint64_t version_with_lengths = 3;
constexpr std::uint64_t ns_per_stamp = 1'000'000;

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

/// A text; from file version 3 on its length stands before it.
std::string_view take_text(std::string_view& fields, std::uint64_t file_version) {
  std::uint64_t length = 0;
  if (file_version < version_with_lengths) {
    length = std::min(fields.find(' '), fields.size());
  } else if (!take_number(fields, length)) {
    length = 0;
  }
  const std::string_view text = fields.substr(0, length);
  fields.remove_prefix(std::min(text.size() + 1, fields.size()));
  return text;
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

HeaptrackSource::HeaptrackSource(std::unique_ptr<Input> input, const std::string& path)
    : path_(path), lines_(std::move(input), path) {
  header_.paced = false;
  header_.threads_known = false;
  header_.names.emplace_back();
  header_.threads.push_back({1, {}});
  header_.recorder = "heaptrack";
  std::string_view line;
  if (!next_line(line) || !line.starts_with("v ")) throw Error(path_ + " is no heaptrack recording");
  std::string_view fields = line.substr(2);
  std::uint64_t program_version = 0;
  if (!take_number(fields, program_version)) lines_.fail(line, "heaptrack's version was expected");
  if (!fields.empty() && !take_number(fields, file_version_))
    lines_.fail(line, "heaptrack's file version was expected");
  if (file_version_ > newest_file_version) {
    lines_.fail(line, "this heaptrack file version is newer than the ones blockyard reads (up to 3)");
  }
  for (const unsigned shift : {16U, 8U, 0U}) {
    header_.recorder += shift == 16 ? ' ' : '.';
    header_.recorder += std::to_string(program_version >> shift & 0xFF);
  }
  // The header must be complete before the first event is requested.
  while (events_.empty() && (header_.program.empty() || in_command_) && next_line(line)) read_line(line);
}

// The next whole line. heaptrack ends every line, so one without an end is cut off.
bool HeaptrackSource::next_line(std::string_view& line) {
  if (!lines_.next(line)) return false;
  if (lines_.is_ended()) return true;
  torn_ = true;
  return false;
}

void HeaptrackSource::refuse_beyond_any_process(std::uint64_t size, std::string_view line) const {
  if (size > most_block_bytes) lines_.fail(line, "it " + asks_too_much(size));
}

std::span<const Event> HeaptrackSource::next() {
  if (!primed_) events_.clear();
  primed_ = false;
  std::string_view line;
  while (events_.size() < batch) {
    if (!next_line(line)) {
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
      if (!take_number(fields, added.size)) lines_.fail(line, "an allocation's size was expected");
      refuse_beyond_any_process(added.size, line);
      std::uint64_t trace = 0;
      if (take_number(fields, trace)) added.site = site_of(trace);
      break;
    }
    case 'c': {
      std::uint64_t stamp = 0;
      if (!take_number(fields, stamp) || stamp > ~std::uint64_t{0} / ns_per_stamp / 2)
        lines_.fail(line, "a time stamp was expected");
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
    case 'x':
      executable_ = take_text(fields, file_version_);
      break;
    case 's':
      // The oldest versions wrote no length, and the text goes to the end of the line.
      strings_.emplace_back(file_version_ < version_with_lengths ? fields : take_text(fields, file_version_));
      break;
    case 'i':
      read_address(fields);
      break;
    case 't':
      read_trace(fields);
      break;
    case 'm':
      read_module(fields);
      break;
    // Resident set, page size, attached, suppressions, comments.
    case 'R':
    case 'I':
    case 'A':
    case 'S':
    case '#':
      break;
    default:
      lines_.fail(line, "heaptrack writes no line like this");
  }
}

// m PATH ADDRESS [SEGMENT SIZE]...: a module that is mapped; "m -" forgets all before it.
void HeaptrackSource::read_module(std::string_view fields) {
  const std::string_view path = take_text(fields, file_version_);
  if (path == "-") {
    ranges_.clear();
    return;
  }
  Module module;
  module.path = path == "x" ? executable_ : path;
  if (!take_number(fields, module.bias)) return;
  const std::size_t first = ranges_.size();
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  while (take_number(fields, offset) && take_number(fields, bytes)) {
    const std::uint64_t begin = module.bias + offset;
    const std::uint64_t end = begin + bytes;
    if (begin < module.bias || end <= begin) continue;
    module.begin = ranges_.size() == first ? begin : std::min(module.begin, begin);
    module.end = std::max(module.end, end);
    ranges_.push_back({begin, end, no_module});
  }
  if (ranges_.size() == first) return;
  // heaptrack lists all modules again when one comes or goes.
  std::uint32_t index = 0;
  const auto modules = stacks_.modules();
  while (index < modules.size() && !(modules[index].path == module.path && modules[index].bias == module.bias &&
                                     modules[index].begin == module.begin && modules[index].end == module.end)) {
    ++index;
  }
  if (index == modules.size()) {
    module.mapped_ns = time_ns_;
    stacks_.add_module(std::move(module));
  }
  for (std::size_t i = first; i < ranges_.size(); ++i) ranges_[i].module = index;
}

// Of the raw form. heaptrack's addresses are return addresses.
std::uint32_t HeaptrackSource::frame_of(std::uint64_t address) {
  const std::uint64_t call = address == 0 ? 0 : address - 1;
  for (const Range& range : ranges_) {
    if (call < range.begin || call >= range.end) continue;
    return stacks_.intern_frame(range.module, call - stacks_.modules()[range.module].bias);
  }
  return stacks_.intern_frame(no_module, call);
}

// i ADDRESS [MODULE [FUNCTION FILE LINE]...], of the interpreted form: the inlined functions come first, and 0 stands
// for an unknown text.
void HeaptrackSource::read_address(std::string_view fields) {
  std::uint64_t address = 0;
  std::uint64_t text = 0;
  std::uint32_t module = no_module;
  take_number(fields, address);
  if (take_number(fields, text) && text != 0 && text <= strings_.size()) {
    string_modules_.resize(strings_.size(), no_module);
    std::uint32_t& known = string_modules_[text - 1];
    if (known == no_module) known = stacks_.add_module({.path = strings_[text - 1], .build_id = {}});
    module = known;
  }
  const std::uint32_t frame = stacks_.intern_frame(module, address == 0 ? 0 : address - 1);
  frames_.push_back(frame);
  std::vector<NamedFunction> functions;
  for (std::uint64_t name = 0; take_number(fields, name);) {
    std::uint64_t file = 0;
    std::uint64_t line = 0;
    take_number(fields, file);
    take_number(fields, line);
    const auto text_of = [this](std::uint64_t number) {
      return number == 0 || number > strings_.size() ? std::string_view() : std::string_view(strings_[number - 1]);
    };
    functions.push_back({text_of(name), text_of(file), static_cast<std::uint32_t>(line)});
  }
  if (!functions.empty() && stacks_.names(frame).empty()) stacks_.set_names(frame, functions);
}

// t ADDRESS PARENT: an address in the raw form, the number of an `i` line in the interpreted one.
void HeaptrackSource::read_trace(std::string_view fields) {
  std::uint64_t address = 0;
  std::uint64_t parent = 0;
  const bool is_whole = take_number(fields, address) && take_number(fields, parent) && parent <= sites_.size() &&
                        (parent == 0 || sites_[parent - 1] != no_site) &&
                        (frames_.empty() || (address != 0 && address <= frames_.size()));
  if (!is_whole) {
    sites_.push_back(no_site);
    return;
  }
  const std::uint32_t frame = frames_.empty() ? frame_of(address) : frames_[address - 1];
  sites_.push_back(stacks_.intern_node(parent == 0 ? no_node : sites_[parent - 1], frame));
}

std::uint32_t HeaptrackSource::site_of(std::uint64_t trace) {
  if (trace == 0) return no_site;
  if (trace <= sites_.size() && sites_[trace - 1] != no_site) return sites_[trace - 1];
  if (!sites_.empty()) ++lost_stacks_;
  return no_site;
}

std::uint64_t HeaptrackSource::push(Kind kind, std::uint64_t size, std::uint64_t block, std::uint64_t address,
                                    std::uint32_t site) {
  Event event;
  event.kind = kind;
  event.size = size;
  event.block = block;
  event.address = address;
  event.site = site;
  event.time_ns = ++time_ns_;
  events_.push_back(event);
  return block;
}

// Raw: + SIZE TRACE POINTER. Interpreted: + INDEX of an `a` line.
void HeaptrackSource::allocate(std::string_view fields, std::string_view line) {
  std::uint64_t first = 0;
  std::uint64_t trace = 0;
  std::uint64_t address = 0;
  if (!take_number(fields, first)) lines_.fail(line, "a number was expected");
  if (fields.empty()) {
    if (first >= kinds_.size()) lines_.fail(line, "it names an allocation that no 'a' line described");
    kinds_[first].live.push_back(push(Kind::allocate, kinds_[first].size, next_block_++, 0, kinds_[first].site));
    return;
  }
  if (!take_number(fields, trace) || !take_number(fields, address) || address == 0) {
    lines_.fail(line, "a trace and a pointer were expected behind the size");
  }
  refuse_beyond_any_process(first, line);
  std::uint64_t stale = 0;
  if (addresses_.take(address, stale)) {
    ++unseen_frees_;
    push(Kind::free, 0, stale, 0, no_site);
  }
  addresses_.insert(address, push(Kind::allocate, first, next_block_++, address, site_of(trace)));
}

// Raw: - POINTER. Interpreted: - INDEX of an `a` line. A recording has `a` lines or it is raw.
void HeaptrackSource::release(std::string_view fields, std::string_view line) {
  std::uint64_t named = 0;
  if (!take_number(fields, named)) lines_.fail(line, "a number was expected");
  std::uint64_t block = 0;
  if (kinds_.empty()) {
    if (named == 0 || !addresses_.take(named, block)) {
      ++unseen_allocations_;
      return;
    }
  } else {
    if (named >= kinds_.size()) lines_.fail(line, "it names an allocation that no 'a' line described");
    auto& live = kinds_[named].live;
    if (live.empty()) lines_.fail(line, "a free of nothing: no block of this allocation is live");
    block = live.back();
    live.pop_back();
  }
  push(Kind::free, 0, block, 0, no_site);
}

void HeaptrackSource::note(std::string sentence) {
  header_.repairs.push_back(sentence);
  notes_.push_back(std::move(sentence));
}

void HeaptrackSource::conclude() {
  if (concluded_) return;
  concluded_ = true;
  note("heaptrack keeps no threads and no times of single events: replay it as fast as possible");
  if (torn_ || lines_.is_cut()) {
    header_.cut_at_end = true;
    note("its end is cut off, and the events behind that are missing");
  }
  if (unseen_allocations_ != 0) {
    note(std::to_string(unseen_allocations_) + " frees of blocks that heaptrack never saw allocated were left out");
  }
  if (lost_stacks_ != 0) {
    note(std::to_string(lost_stacks_) + " allocations name a call stack that the recording does not hold");
  }
  if (unseen_frees_ != 0) {
    note(std::to_string(unseen_frees_) +
         " blocks whose free heaptrack never saw go where their address is given again");
  }
}

}  // namespace blockyard::journal
