// What the journal tests share: a folder that vanishes, journals of every kind of event, and reading one whole.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "journal/event.hpp"
#include "journal/reader.hpp"
#include "journal/stack_copy.hpp"
#include "journal/writer.hpp"

#include "../shared/events_as_words.hpp"

namespace blockyard::journal::testing {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "blockyard-journal-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no folder for the test";
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

struct Whole {
  Header header;
  std::shared_ptr<Stacks> stacks = std::make_shared<Stacks>();
  std::vector<Event> events;
  std::vector<std::string> notes;
};

inline Whole drain(Source& source) {
  Whole whole;
  for (auto events = source.next(); !events.empty(); events = source.next()) {
    whole.events.insert(whole.events.end(), events.begin(), events.end());
  }
  whole.header = source.header();
  copy_tables(source.stacks(), *whole.stacks);
  copy_names(source.stacks(), *whole.stacks);
  whole.notes.assign(source.notes().begin(), source.notes().end());
  return whole;
}

inline Whole read(const std::string& path) { return drain(*open(path)); }

/// The sentence that reading the file ends with; empty when nothing is wrong.
inline std::string error_of(const std::string& path) {
  try {
    read(path);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Journals that a test writes as text.
class OfText : public ::testing::Test {
 protected:
  Whole read_text(const std::string& text) {
    spill(folder_ / "a.txt", text);
    return read(folder_ / "a.txt");
  }
  std::string error_of_text(const std::string& text) {
    spill(folder_ / "a.txt", text);
    return error_of(folder_ / "a.txt");
  }
  void expect_error(const std::string& text, const std::string& part) {
    const std::string error = error_of_text(text);
    EXPECT_NE(error.find(part), std::string::npos) << "got: " << error;
  }
  Folder folder_;
};

/// Call stacks with everything that the format knows: modules that come and go, code in none, incomplete stacks, names
/// of inlined functions, and bytes that are no UTF-8.
inline std::shared_ptr<Stacks> sample_stacks(std::size_t nodes, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  auto stacks = std::make_shared<Stacks>();
  stacks->add_module({"/usr/games/sample", "0123456789abcdef", 0x5555'0000'0000, 0x5555'0010'0000, 0x5555'0000'0000});
  stacks->add_module({"/usr/lib/libplug in\n.so", "", 0x7F00'0000'0000, 0x7F00'0000'1000, 0x7F00'0000'0000, 5000});
  stacks->add_module({"/tmp/caf\xE9.so", "ff", 0x7F00'0000'0000, 0x7F00'0000'2000, 0x7EFF'FFFF'0000, 9000});
  stacks->set_unmapped(1, 7000);
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto known = static_cast<std::uint32_t>(stacks->nodes().size());
    const auto parent = known == 0 || random() % 8 == 0 ? no_node : static_cast<std::uint32_t>(random() % known);
    const auto dice = random() % 10;
    const std::uint32_t frame = dice == 0 && parent == no_node ? stacks->intern_frame(StackEnd(random() % 6))
                                : dice == 1
                                    ? stacks->intern_frame(no_module, 0x7FFF'0000'0000 + random() % 1000)
                                    : stacks->intern_frame(static_cast<std::uint32_t>(random() % 3), random() % 5000);
    stacks->intern_node(parent, frame);
  }
  const auto frames = static_cast<std::uint32_t>(stacks->frames().size());
  for (std::uint32_t frame = 0; frame < frames; frame += 1 + frame % 3) {
    const std::string name = "game::update<" + std::to_string(frame / 2) + ">(int, \xFF\n\\)";
    const std::vector<NamedFunction> functions{{name, "src/up date.cpp", frame}, {"main", "", 0}};
    stacks->set_names(frame, std::span(functions).first(1 + frame % 2));
  }
  return stacks;
}

/// A journal of `count` events with everything that the format knows, the same for the same seed.
inline Whole sample(std::size_t count, unsigned seed = 1, bool addresses = true, bool stacks = false) {
  std::mt19937_64 random(seed);
  Whole whole;
  whole.header.program = "/usr/games/sample";
  whole.header.command = {"sample", "--level", "two words", "", "line\nbreak"};
  whole.header.machine = "a machine, its kernel";
  whole.header.recorder = "test";
  whole.header.started_at = "2024-05-06T07:08:09Z";
  whole.header.ticks_per_ns = 2.8;
  whole.header.has_addresses = addresses;
  whole.header.cut_at_end = true;
  whole.header.threads = {{4711, "main"}, {4712, "worker 1"}, {999999, ""}};
  whole.header.names = {"", "loading", "level \"two\"", "physics", "physics/broadphase"};
  stacks = stacks && count != 0;
  if (stacks) whole.stacks = sample_stacks(std::min<std::size_t>(count, 1000), seed);
  std::vector<std::uint64_t> live;
  std::uint64_t next = 0;
  std::uint64_t time = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Event event;
    event.time_ns = time += random() % 8 == 0 ? random() % 100'000'000 : random() % 1000;
    event.thread = static_cast<std::uint32_t>(random() % 3);
    const auto dice = random() % 100;
    const auto take = [&] {
      const std::size_t at = random() % live.size();
      const std::uint64_t block = live[at];
      live[at] = live.back();
      live.pop_back();
      return block;
    };
    if (dice < 40 && !live.empty()) {
      event.kind = Kind::free;
      event.block = take();
    } else if (dice < 50 && !live.empty()) {
      event.kind = Kind::reallocate;
      event.old_block = take();
      event.duration_ns = random() % 5000;
    } else if (dice < 53) {
      event.kind = Kind::frame_mark;
    } else if (dice < 54) {
      event.kind = Kind::phase_mark;
      event.tag = 1 + static_cast<std::uint32_t>(random() % 2);
    } else if (dice < 60) {
      event.kind = Kind::allocate_zeroed;
    } else if (dice < 66) {
      event.kind = Kind::allocate_aligned;
      event.alignment = 1U << random() % 22;
    }
    if (gives_block(event.kind)) {
      event.size = random() % 50 == 0 ? random() % (std::uint64_t{1} << 40) : random() % 300;
      event.block = next++;
      if (addresses) event.address = (event.block + 1) * 16 + (random() % 2 << 40);
      live.push_back(event.block);
    }
    if (stacks && event.kind != Kind::phase_mark && dice % 10 == 0) event.tag = 3 + random() % 2;
    if (stacks && dice % 10 < 8) event.site = static_cast<std::uint32_t>(random() % whole.stacks->nodes().size());
    whole.events.push_back(event);
  }
  return whole;
}

inline Whole sample_with_stacks(std::size_t count, unsigned seed = 1) { return sample(count, seed, true, true); }

inline void write(const std::string& path, const Whole& whole) {
  Writer writer(path, whole.header);
  copy_tables(*whole.stacks, writer.stacks());
  copy_names(*whole.stacks, writer.stacks());
  for (const auto& event : whole.events) writer.add(event);
  writer.finish();
}

inline auto fields_of(const Event& event) {
  return std::tie(event.kind, event.time_ns, event.duration_ns, event.size, event.block, event.old_block, event.address,
                  event.alignment, event.thread, event.site, event.tag);
}

inline auto fields_of(const Module& module) {
  return std::tie(module.path, module.build_id, module.begin, module.end, module.bias, module.mapped_ns,
                  module.unmapped_ns);
}

inline auto fields_of(const Header& header) {
  return std::tie(header.program, header.command, header.machine, header.recorder, header.started_at,
                  header.ticks_per_ns, header.preamble_events, header.paced, header.has_addresses, header.cut_at_end,
                  header.names);
}

inline void expect_same(const Event& a, const Event& b, std::size_t number) {
  ASSERT_EQ(fields_of(a), fields_of(b)) << "event " << number;
}

inline void expect_same(const Stacks& a, const Stacks& b) {
  ASSERT_EQ(a.counts(), b.counts());
  for (std::size_t i = 0; i < a.modules().size(); ++i) {
    EXPECT_EQ(fields_of(a.modules()[i]), fields_of(b.modules()[i]));
  }
  ASSERT_EQ(a.named_frames(), b.named_frames());
  for (std::uint32_t i = 0; i < a.frames().size(); ++i) {
    SCOPED_TRACE("stack frame " + std::to_string(i));
    ASSERT_EQ(a.frames()[i].module, b.frames()[i].module);
    ASSERT_EQ(a.frames()[i].address, b.frames()[i].address);
    ASSERT_EQ(a.names(i).size(), b.names(i).size());
    for (std::size_t f = 0; f < a.names(i).size(); ++f) {
      ASSERT_EQ(a.text(a.names(i)[f].name), b.text(b.names(i)[f].name));
      ASSERT_EQ(a.text(a.names(i)[f].file), b.text(b.names(i)[f].file));
      ASSERT_EQ(a.names(i)[f].line, b.names(i)[f].line);
    }
  }
  for (std::size_t i = 0; i < a.nodes().size(); ++i) {
    ASSERT_EQ(a.nodes()[i].parent, b.nodes()[i].parent) << "node " << i;
    ASSERT_EQ(a.nodes()[i].frame, b.nodes()[i].frame) << "node " << i;
  }
}

inline void expect_same(const Whole& a, const Whole& b) {
  expect_same(*a.stacks, *b.stacks);
  EXPECT_EQ(fields_of(a.header), fields_of(b.header));
  ASSERT_EQ(a.header.threads.size(), b.header.threads.size());
  for (std::size_t i = 0; i < a.header.threads.size(); ++i) {
    EXPECT_EQ(a.header.threads[i].id, b.header.threads[i].id);
    EXPECT_EQ(a.header.threads[i].name, b.header.threads[i].name);
  }
  ASSERT_EQ(a.events.size(), b.events.size());
  for (std::size_t i = 0; i < a.events.size(); ++i) {
    expect_same(a.events[i], b.events[i], i);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace blockyard::journal::testing
