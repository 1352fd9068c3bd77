#include "names/journal_names.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "journal/byj_reader.hpp"
#include "journal/format.hpp"
#include "journal/output_file.hpp"
#include "journal/progress.hpp"
#include "journal/stack_codec.hpp"
#include "journal/stack_copy.hpp"
#include "names/perf_map.hpp"

namespace blockyard::names {
namespace {

namespace fs = std::filesystem;
namespace format = journal::format;

using journal::Error;
using journal::Stacks;

// ------------------------------------------------------------------------------------------------- resolving

/// Stores new names, unless there are none or older ones say more. Whether the frame is named then.
bool set_names(Stacks& stacks, std::uint32_t frame, const Functions& functions) {
  if (functions.empty()) return stacks.is_named(frame);
  const auto old = stacks.names(frame);
  const bool old_has_line = !old.empty() && old.front().line != 0;
  const bool says_less = stacks.is_named(frame) && (old_has_line || journal::is_place_name(functions.front().name));
  if (functions.front().line == 0 && says_less) return true;
  std::vector<journal::NamedFunction> named;
  for (const Function& function : functions) named.push_back({function.name, function.file, function.line});
  stacks.set_names(frame, named);
  return stacks.is_named(frame);
}

/// The map of the recorded process: its main thread has the process's id. A map that is older than the recording was
/// another process's.
std::string find_perf_map(const journal::Header& header) {
  for (const journal::Thread& thread : header.threads) {
    std::string path = "/tmp/perf-" + std::to_string(thread.id) + ".map";
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    std::tm start{};
    if (::strptime(header.started_at.c_str(), "%Y-%m-%dT%H:%M:%S", &start) == nullptr) continue;
    if (info.st_mtim.tv_sec >= ::timegm(&start)) return path;
  }
  return {};
}

void name_generated(const journal::Header& header, Stacks& stacks, const std::vector<std::uint32_t>& frames,
                    const std::string& chosen, Naming& naming) {
  naming.generated_frames = frames.size();
  naming.perf_map = chosen.empty() ? find_perf_map(header) : chosen;
  std::optional<PerfMap> map;
  std::error_code missing;
  const bool is_empty = fs::file_size(naming.perf_map, missing) == 0;
  if (missing && !chosen.empty()) throw Error("--perf-map " + chosen + " can't be read: " + missing.message());
  if (!missing && !is_empty) map.emplace(naming.perf_map);
  for (const std::uint32_t frame : frames) {
    const std::string name = map ? map->find(stacks.frames()[frame].address) : std::string();
    Functions functions;
    if (!name.empty()) functions.push_back({name, {}, 0});
    if (set_names(stacks, frame, functions)) ++naming.generated_named;
  }
}

/// The only function of a frame, where nothing but its place is known; else empty.
std::string_view place_of(const Stacks& stacks, std::uint32_t frame) {
  const auto functions = stacks.names(frame);
  if (functions.size() != 1) return {};
  const std::string& name = stacks.text(functions.front().name);
  return journal::is_place_name(name) ? std::string_view(name) : std::string_view();
}

/// Whether the C library's start-up code calls this function: main(). That code may have no names itself.
bool is_main(const Stacks& stacks, std::uint32_t node) {
  const auto nodes = stacks.nodes();
  const auto module_of = [&](std::uint32_t one) { return stacks.frames()[nodes[one].frame].module; };
  std::uint32_t caller = nodes[node].parent;
  if (caller == journal::no_node || module_of(caller) == module_of(node)) return false;
  const std::uint32_t above = nodes[caller].parent;
  const bool is_nameless = !place_of(stacks, nodes[caller].frame).empty();
  if (is_nameless && above != journal::no_node && module_of(above) == module_of(caller)) caller = above;
  const auto functions = stacks.names(nodes[caller].frame);
  return !functions.empty() && stacks.text(functions.back().name).starts_with("__libc_start");
}

/// A stripped program has no symbol for main(); a stack tells which function it is.
void name_main(Stacks& stacks, Naming& naming) {
  std::set<std::pair<std::uint32_t, std::string>> found;  // module and place
  for (std::uint32_t i = 0; i < stacks.nodes().size(); ++i) {
    const std::uint32_t frame = stacks.nodes()[i].frame;
    const std::string_view place = place_of(stacks, frame);
    if (!place.empty() && is_main(stacks, i)) found.emplace(stacks.frames()[frame].module, place);
  }
  const journal::NamedFunction main{"main", {}, 0};
  for (std::uint32_t i = 0; !found.empty() && i < stacks.frames().size(); ++i) {
    const std::uint32_t module = stacks.frames()[i].module;
    if (!found.contains({module, std::string(place_of(stacks, i))})) continue;
    stacks.set_names(i, {&main, 1});
    ++naming.named;
    const journal::Module& file = stacks.modules()[module];
    for (NamedModule& one : naming.modules) one.named += one.path == file.path && one.build_id == file.build_id;
  }
}

Naming resolve(const journal::Header& header, Stacks& stacks, const NamingOptions& options,
               const std::function<void(double)>& progress) {
  std::map<std::pair<std::string, std::string>, std::vector<std::uint32_t>> by_file;
  std::vector<std::uint32_t> generated;
  Naming naming;
  for (std::uint32_t i = 0; i < stacks.frames().size(); ++i) {
    const journal::Frame& frame = stacks.frames()[i];
    if (frame.module == journal::end_marker) continue;
    ++naming.frames;
    if (frame.module == journal::no_module) {
      generated.push_back(i);
      continue;
    }
    const journal::Module& module = stacks.modules()[frame.module];
    by_file[{module.path, module.build_id}].push_back(i);
  }
  name_generated(header, stacks, generated, options.perf_map, naming);
  naming.named = naming.generated_named;
  Resolver resolver(options.resolver);
  std::uint64_t done = generated.size();
  for (const auto& [file, frames] : by_file) {
    std::vector<std::uint64_t> addresses;
    for (const std::uint32_t frame : frames) addresses.push_back(stacks.frames()[frame].address);
    Resolved resolved = resolver.resolve(file.first, file.second, addresses);
    NamedModule module{file.first, file.second, frames.size(), 0, 0, resolved.symbols, std::move(resolved.problem)};
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (!set_names(stacks, frames[i], resolved.functions[i])) continue;
      ++module.named;
      if (stacks.names(frames[i]).front().line != 0) ++module.lines;
    }
    naming.named += module.named;
    naming.modules.push_back(std::move(module));
    done += frames.size();
    if (progress) progress(static_cast<double>(done) / static_cast<double>(naming.frames));
  }
  name_main(stacks, naming);
  std::stable_sort(naming.modules.begin(), naming.modules.end(),
                   [](const NamedModule& a, const NamedModule& b) { return a.frames > b.frames; });
  return naming;
}

// ------------------------------------------------------------------------------------------------- storing

struct Section {
  std::uint32_t type = 0;
  std::string payload;
};

Section read_section(const journal::ByjSource& file, std::uint64_t at) {
  const auto head = format::get<format::SectionHead>(file.read_bytes(at, sizeof(format::SectionHead)), 0);
  return {head.type, file.read_bytes(at + sizeof head, head.payload_bytes)};
}

void put_section(std::string& out, std::uint32_t type, std::string_view payload) {
  format::put(out, format::seal(type, payload));
  out += payload;
}

/// A footer's fields without the index of stacks, and that index by itself.
std::string split_footer(std::string_view payload, std::vector<std::uint64_t>& stacks_at) {
  constexpr std::size_t field_head = sizeof(std::uint16_t) + sizeof(std::uint32_t);
  std::string kept;
  while (payload.size() >= field_head) {
    const auto tag = format::get<std::uint16_t>(payload, 0);
    const auto size = format::get<std::uint32_t>(payload, sizeof tag);
    const std::string_view field = payload.substr(0, field_head + size);
    payload.remove_prefix(field.size());
    if (tag != static_cast<std::uint16_t>(format::Field::stack_index)) {
      kept += field;
      continue;
    }
    for (std::size_t at = field_head; at + sizeof(std::uint64_t) <= field.size(); at += sizeof(std::uint64_t)) {
      stacks_at.push_back(format::get<std::uint64_t>(field, at));
    }
  }
  return kept;
}

bool has_allocation(journal::Source& source) {
  bool has = false;
  journal::for_each_event(source, {}, [&has](const journal::Event& event) {
    has = journal::gives_block(event.kind);
    return !has;
  });
  return has;
}

/// A journal whose recorder was stopped hard can take no names.
void require_footer(const std::string& path, const journal::ByjSource& file) {
  const std::uint64_t size = file.bytes_total();
  const std::string tail =
      size < format::tail_bytes ? std::string() : file.read_bytes(size - format::tail_bytes, format::tail_bytes);
  if (!tail.ends_with(std::string_view(format::end_magic.data(), format::end_magic.size()))) {
    throw Error(path + " has no footer, as its recorder was stopped hard; 'blockyard cut " + path +
                " -o whole.byj' makes a journal that can take names");
  }
}

/// Writes the journal again with the names of `stacks`. Names stand between the last block and the footer, so that what
/// precedes them is copied as it is. The reader has checked the journal's footer, and what it points to.
void store(const std::string& path, const journal::ByjSource& old, const Stacks& stacks) {
  const std::uint64_t size = old.bytes_total();
  const auto footer_at = format::get<std::uint64_t>(old.read_bytes(size - format::tail_bytes, format::tail_bytes), 0);
  std::vector<std::uint64_t> stacks_at;
  std::string footer = split_footer(read_section(old, footer_at).payload, stacks_at);
  std::uint64_t end = footer_at;
  while (!stacks_at.empty()) {
    const Section section = read_section(old, stacks_at.back());
    const bool is_last = stacks_at.back() + sizeof(format::SectionHead) + section.payload.size() == end;
    if (section.type != format::section_names || !is_last) break;
    end = stacks_at.back();
    stacks_at.pop_back();
  }
  std::string added;
  journal::StackEncoder encoder;
  for (std::uint32_t frame = 0; stacks.has_functions() && frame < stacks.counts().frames;) {
    stacks_at.push_back(end + added.size());
    put_section(added, format::section_names, encoder.names(stacks, frame));
  }
  format::put_field(footer, format::Field::stack_index,
                    {reinterpret_cast<const char*>(stacks_at.data()), stacks_at.size() * sizeof(std::uint64_t)});
  const std::uint64_t new_footer_at = end + added.size();
  put_section(added, format::section_footer, footer);
  format::put(added, new_footer_at);
  added.append(format::end_magic.data(), format::end_magic.size());

  const std::string target = fs::canonical(path).string();
  journal::OutputFile replacement(target, "", true);
  const auto written = journal::ByteSink::create_plain(replacement.temporary(), target);
  fs::permissions(replacement.temporary(), fs::status(target).permissions());
  constexpr std::uint64_t piece = 1U << 20;
  for (std::uint64_t at = 0; at < end; at += piece) written->write(old.read_bytes(at, std::min(piece, end - at)));
  written->write(added);
  written->finish();
  replacement.commit();
}

}  // namespace

Naming name_journal(const std::string& path, const NamingOptions& options,
                    const std::function<void(double)>& progress) {
  for (const std::string& folder : options.resolver.debug_folders) {
    if (!fs::is_directory(folder)) throw Error("--debug-dir " + folder + " is no folder");
  }
  const auto opened = journal::open(path);
  const auto* const source = dynamic_cast<const journal::ByjSource*>(opened.get());
  if (source == nullptr) {
    throw Error(path + " can't keep names, because it is no .byj; 'blockyard convert " + path +
                " -o game.byj' makes one");
  }
  require_footer(path, *source);
  Stacks stacks;
  journal::copy_tables(source->stacks(), stacks);
  journal::copy_names(source->stacks(), stacks);
  if (stacks.nodes().empty()) {
    if (!has_allocation(*opened)) throw Error(path + " holds no allocation");
    throw Error(path + " has no call stacks to name; 'blockyard record' keeps them unless --no-stacks is given");
  }
  Naming naming = resolve(source->header(), stacks, options, progress);
  store(path, *source, stacks);
  return naming;
}

}  // namespace blockyard::names
