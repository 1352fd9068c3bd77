#include "names/journal_names.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
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

using ModuleFile = std::pair<std::string, std::string>;  ///< path and build-id

/// What addresses of one module are.
struct Known {
  std::vector<std::uint64_t> addresses;  ///< ascending
  Resolved resolved;                     ///< one for each address

  const Functions& at(std::uint64_t address) const {
    const auto found = std::lower_bound(addresses.begin(), addresses.end(), address);
    return resolved.functions[static_cast<std::size_t>(found - addresses.begin())];
  }
};
using KnownModules = std::map<ModuleFile, Known>;

std::size_t processors() { return std::max(1u, std::thread::hardware_concurrency()); }

/// Does `work(0, worker)` to `work(count - 1, worker)`, each once, on `workers` threads, which are numbered from 0.
/// `work` must not throw.
void for_all(std::size_t count, std::size_t workers,
             const std::function<void(std::size_t index, std::size_t worker)>& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&](std::size_t worker) {
    for (std::size_t index = 0; (index = next.fetch_add(1)) < count;) work(index, worker);
  };
  std::vector<std::thread> helpers;
  while (helpers.size() + 1 < std::min(count, workers)) helpers.emplace_back(take, helpers.size() + 1);
  take(0);
  for (std::thread& helper : helpers) helper.join();
}

/// Adds the addresses of a journal's stack frames to those that are to be resolved.
void collect_addresses(const Stacks& stacks, KnownModules& modules) {
  for (const journal::Frame& frame : stacks.frames()) {
    if (frame.module == journal::end_marker || frame.module == journal::no_module) continue;
    const journal::Module& module = stacks.modules()[frame.module];
    modules[{module.path, module.build_id}].addresses.push_back(frame.address);
  }
}

/// Resolves each module once, whichever journals it is in.
void resolve_modules(KnownModules& modules, const Options& options, const std::function<void(double)>& progress) {
  std::vector<std::pair<const ModuleFile*, Known*>> all;
  std::size_t total = 0;
  for (auto& [file, known] : modules) {
    std::sort(known.addresses.begin(), known.addresses.end());
    known.addresses.erase(std::unique(known.addresses.begin(), known.addresses.end()), known.addresses.end());
    total += known.addresses.size();
    all.emplace_back(&file, &known);
  }
  // The largest first, so that no processor is left alone with it.
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.second->addresses.size() > b.second->addresses.size(); });
  std::mutex lock;
  std::size_t done = 0;
  std::vector<std::exception_ptr> failures(all.size());
  // What asks servers is not known to serve several threads.
  std::vector<Resolver> resolvers(options.ask_servers ? 1 : processors(), Resolver(options));
  for_all(all.size(), resolvers.size(), [&](std::size_t index, std::size_t worker) {
    const auto [file, known] = all[index];
    try {
      known->resolved = resolvers[worker].resolve(file->first, file->second, known->addresses);
    } catch (...) {
      failures[index] = std::current_exception();
    }
    const std::lock_guard held(lock);
    done += known->addresses.size();
    if (progress) progress(static_cast<double>(done) / static_cast<double>(total));
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

Naming set_all_names(const journal::Header& header, Stacks& stacks, const std::string& perf_map,
                     const KnownModules& known_modules) {
  std::map<ModuleFile, std::vector<std::uint32_t>> by_file;
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
  name_generated(header, stacks, generated, perf_map, naming);
  naming.named = naming.generated_named;
  for (const auto& [file, frames] : by_file) {
    const Known& known = known_modules.at(file);
    NamedModule module{file.first, file.second, frames.size(), 0, 0, known.resolved.symbols, known.resolved.problem};
    for (const std::uint32_t frame : frames) {
      if (!set_names(stacks, frame, known.at(stacks.frames()[frame].address))) continue;
      ++module.named;
      if (stacks.names(frame).front().line != 0) ++module.lines;
    }
    naming.named += module.named;
    naming.modules.push_back(std::move(module));
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

/// A journal that can take names, and a copy of its tables.
class Nameable {
 public:
  explicit Nameable(const std::string& path) : path_(path), opened_(journal::open(path)) {
    source_ = dynamic_cast<const journal::ByjSource*>(opened_.get());
    if (source_ == nullptr) {
      throw Error(path + " can't keep names, because it is no .byj; 'blockyard convert " + path +
                  " -o game.byj' makes one");
    }
    require_footer(path, *source_);
    journal::copy_tables(source_->stacks(), stacks);
    journal::copy_names(source_->stacks(), stacks);
    if (!stacks.nodes().empty()) return;
    if (!has_allocation(*opened_)) throw Error(path + " holds no allocation");
    throw Error(path + " has no call stacks to name; 'blockyard record' keeps them unless --no-stacks is given");
  }
  const journal::Header& header() const { return source_->header(); }
  void store() const { names::store(path_, *source_, stacks); }

  Stacks stacks;

 private:
  std::string path_;
  std::unique_ptr<journal::Source> opened_;
  const journal::ByjSource* source_ = nullptr;
};

}  // namespace

std::vector<Naming> name_journals(std::span<const std::string> paths, const NamingOptions& options,
                                  const std::function<void(double)>& progress) {
  for (const std::string& folder : options.resolver.debug_folders) {
    if (!fs::is_directory(folder)) throw Error("--debug-dir " + folder + " is no folder");
  }
  std::vector<Naming> namings(paths.size());
  const auto attempt = [&](std::size_t index, const auto& work) {
    try {
      work();
    } catch (const std::exception& error) {
      namings[index].error = error.what();
    }
  };
  // Each is read twice rather than kept: there may be thousands.
  std::mutex lock;
  KnownModules modules;
  for_all(paths.size(), processors(), [&](std::size_t index, std::size_t) {
    attempt(index, [&] {
      const Nameable journal(paths[index]);
      const std::lock_guard held(lock);
      collect_addresses(journal.stacks, modules);
    });
  });
  resolve_modules(modules, options.resolver, progress);
  for_all(paths.size(), processors(), [&](std::size_t index, std::size_t) {
    if (!namings[index].error.empty()) return;
    attempt(index, [&] {
      Nameable journal(paths[index]);
      namings[index] = set_all_names(journal.header(), journal.stacks, options.perf_map, modules);
      journal.store();
    });
  });
  return namings;
}

Naming name_journal(const std::string& path, const NamingOptions& options,
                    const std::function<void(double)>& progress) {
  Naming naming = name_journals({&path, 1}, options, progress).front();
  if (!naming.error.empty()) throw Error(naming.error);
  return naming;
}

}  // namespace blockyard::names
