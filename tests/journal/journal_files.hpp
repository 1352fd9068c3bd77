// What the journal tests share: a folder that vanishes, journals of every kind of event, and reading one whole.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "journal/event.hpp"
#include "journal/reader.hpp"
#include "journal/writer.hpp"

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
  std::vector<Event> events;
  std::vector<std::string> notes;
};

inline Whole drain(Source& source) {
  Whole whole;
  for (auto events = source.next(); !events.empty(); events = source.next()) {
    whole.events.insert(whole.events.end(), events.begin(), events.end());
  }
  whole.header = source.header();
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

/// A journal of `count` events with everything that the format knows, the same for the same seed.
inline Whole sample(std::size_t count, unsigned seed = 1, bool addresses = true) {
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
  whole.header.names = {"", "loading", "level \"two\""};
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
    if (event.kind != Kind::phase_mark && dice % 10 == 0) event.tag = static_cast<std::uint32_t>(random());
    if (dice % 10 == 1) event.site = static_cast<std::uint32_t>(random() % 1000);
    whole.events.push_back(event);
  }
  return whole;
}

inline void write(const std::string& path, const Whole& whole) {
  Writer writer(path, whole.header);
  for (const auto& event : whole.events) writer.add(event);
  writer.finish();
}

inline void expect_same(const Event& a, const Event& b, std::size_t number) {
  SCOPED_TRACE("event " + std::to_string(number));
  ASSERT_EQ(a.kind, b.kind);
  ASSERT_EQ(a.time_ns, b.time_ns);
  ASSERT_EQ(a.duration_ns, b.duration_ns);
  ASSERT_EQ(a.size, b.size);
  ASSERT_EQ(a.block, b.block);
  ASSERT_EQ(a.old_block, b.old_block);
  ASSERT_EQ(a.address, b.address);
  ASSERT_EQ(a.alignment, b.alignment);
  ASSERT_EQ(a.thread, b.thread);
  ASSERT_EQ(a.site, b.site);
  ASSERT_EQ(a.tag, b.tag);
}

inline void expect_same(const Whole& a, const Whole& b) {
  EXPECT_EQ(a.header.program, b.header.program);
  EXPECT_EQ(a.header.command, b.header.command);
  EXPECT_EQ(a.header.machine, b.header.machine);
  EXPECT_EQ(a.header.recorder, b.header.recorder);
  EXPECT_EQ(a.header.started_at, b.header.started_at);
  EXPECT_EQ(a.header.ticks_per_ns, b.header.ticks_per_ns);
  EXPECT_EQ(a.header.preamble_events, b.header.preamble_events);
  EXPECT_EQ(a.header.paced, b.header.paced);
  EXPECT_EQ(a.header.has_addresses, b.header.has_addresses);
  EXPECT_EQ(a.header.cut_at_end, b.header.cut_at_end);
  EXPECT_EQ(a.header.names, b.header.names);
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
