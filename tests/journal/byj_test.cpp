// The .byj format keeps everything, survives crashes at a flush, and notices every damaged byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "journal/block_decoder.hpp"
#include "journal/block_encoder.hpp"
#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

TEST(Byj, gives_back_every_field_of_every_event) {
  Folder folder;
  const Whole written = sample_with_stacks(200'000);
  write(folder / "a.byj", written);
  const Whole got = read(folder / "a.byj");
  expect_same(written, got);
  EXPECT_TRUE(got.notes.empty());
}

TEST(Byj, without_stacks_and_tags_is_version_1) {
  Folder folder;
  const Whole written = sample(1000);
  write(folder / "a.byj", written);
  expect_same(written, read(folder / "a.byj"));
  EXPECT_EQ(slurp(folder / "a.byj")[8], 1);
  write(folder / "b.byj", sample_with_stacks(1000));
  EXPECT_EQ(slurp(folder / "b.byj")[8], 2);
}

TEST(Byj, sites_of_interleaved_threads_take_no_more_than_those_of_one_after_the_other) {
  Folder folder;
  const auto size = [&folder](bool interleaved) {
    Whole whole = sample(0);
    whole.stacks = sample_stacks(1000);
    std::mt19937_64 random(1);
    std::vector<std::uint32_t> steps(3);
    for (std::uint64_t i = 0; i < 60'000; ++i) {
      // Each thread walks through its own hundred sites again and again.
      const auto thread = static_cast<std::uint32_t>(interleaved ? random() % 3 : i / 20'000);
      const std::uint32_t site = thread * 300 + steps[thread]++ * 37 % 100;
      whole.events.push_back({.time_ns = i, .size = 8, .block = i, .thread = thread, .site = site});
    }
    whole.header.has_addresses = false;
    const std::string path = folder / (interleaved ? "interleaved.byj" : "apart.byj");
    write(path, whole);
    expect_same(whole, read(path));
    Whole without = whole;
    for (Event& event : without.events) event.site = no_site;
    write(path + ".without", without);
    return std::filesystem::file_size(path) - std::filesystem::file_size(path + ".without");
  };
  EXPECT_LT(size(true), size(false) + 3000) << size(true) << " " << size(false);
}

TEST(Byj, a_tag_alone_makes_version_2) {
  Folder folder;
  Whole written = sample(1000);
  const auto plain = std::find_if(written.events.begin(), written.events.end(),
                                  [](const Event& event) { return event.kind != Kind::phase_mark; });
  plain->tag = 4;
  write(folder / "a.byj", written);
  expect_same(written, read(folder / "a.byj"));
  EXPECT_EQ(slurp(folder / "a.byj")[8], 2);
}

TEST(Byj, keeps_more_stacks_than_a_section_holds) {
  Folder folder;
  Whole written = sample_with_stacks(10);
  Stacks& stacks = *written.stacks;
  for (std::uint32_t i = 0; i < 5000; ++i) stacks.add_module({"/lib/" + std::to_string(i), "ab", i, i + 1});
  std::mt19937_64 random(5);
  for (std::uint32_t i = 0; i < 150'000; ++i) {
    const auto frame = stacks.intern_frame(static_cast<std::uint32_t>(random() % 5000), i);
    stacks.intern_node(i % 3 == 0 ? no_node : static_cast<std::uint32_t>(random() % stacks.nodes().size()), frame);
    const std::string name = std::to_string(i) + "f";
    const NamedFunction function{name, "a.cpp", i};
    stacks.set_names(frame, std::span(&function, 1));
  }
  written.events.back().site = static_cast<std::uint32_t>(stacks.nodes().size() - 1);
  write(folder / "a.byj", written);
  const Whole got = read(folder / "a.byj");
  expect_same(written, got);
  EXPECT_NO_THROW(got.stacks->check());
}

TEST(Byj, keeps_no_addresses_unless_the_header_asks_for_them) {
  Folder folder;
  Whole written = sample(1000, 2, false);
  for (auto& event : written.events) event.address = 4096;
  write(folder / "a.byj", written);
  for (const auto& event : read(folder / "a.byj").events) ASSERT_EQ(event.address, 0U);
}

TEST(Byj, an_empty_journal_is_a_journal) {
  Folder folder;
  const Whole written = sample(0);
  write(folder / "a.byj", written);
  expect_same(written, read(folder / "a.byj"));
}

TEST(Byj, is_readable_up_to_the_last_flush_when_the_writer_never_finished) {
  Folder folder;
  const Whole written = sample_with_stacks(1000);
  Header early = written.header;
  early.threads.resize(1);
  early.names.clear();
  Writer writer(folder / "a.byj", early);
  writer.add_thread(written.header.threads[1]);
  writer.add_thread({written.header.threads[2].id, "renamed later"});
  writer.name_thread(2, written.header.threads[2].name);
  for (std::size_t i = 1; i < written.header.names.size(); ++i)
    EXPECT_EQ(writer.intern_name(written.header.names[i]), i);
  copy_tables(*written.stacks, writer.stacks());
  for (std::size_t i = 0; i < 600; ++i) writer.add(written.events[i]);
  writer.header().preamble_events = 5;
  writer.flush();
  for (std::size_t i = 600; i < 1000; ++i) writer.add(written.events[i]);
  std::filesystem::copy_file(folder / "a.byj", folder / "crashed.byj");
  Whole expected = written;
  expected.events.resize(600);
  expected.stacks->clear_names();
  expected.header.preamble_events = 5;
  const Whole got = read(folder / "crashed.byj");
  expect_same(expected, got);
  ASSERT_EQ(got.notes.size(), 1U);
  EXPECT_NE(got.notes[0].find("no footer"), std::string::npos);
  EXPECT_NE(got.notes[0].find("600 events"), std::string::npos);
}

TEST(Byj, every_flipped_bit_is_an_error) {
  Folder folder;
  write(folder / "a.byj", sample_with_stacks(20));
  const std::string bytes = slurp(folder / "a.byj");
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    spill(folder / "b.byj", damaged);
    ASSERT_NE(error_of(folder / "b.byj"), "") << "byte " << at << " of " << bytes.size();
  }
}

TEST(Byj, every_truncation_is_an_error_or_ends_at_a_flush_with_a_note) {
  Folder folder;
  write(folder / "a.byj", sample_with_stacks(20));
  const std::string bytes = slurp(folder / "a.byj");
  std::size_t flushes = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    spill(folder / "b.byj", bytes.substr(0, size));
    if (!error_of(folder / "b.byj").empty()) continue;
    ++flushes;
    EXPECT_EQ(read(folder / "b.byj").notes.size(), 1U);
  }
  EXPECT_EQ(flushes, 4U);  // after the header, the call stacks, the only block and the names
}

TEST(Byj, an_unknown_version_or_required_feature_is_named) {
  Folder folder;
  write(folder / "a.byj", sample(10));
  for (const auto& [at, value, named] : {std::tuple(8, 9, "version 9"), std::tuple(12, 4, "features (4)")}) {
    std::string bytes = slurp(folder / "a.byj");
    bytes[static_cast<std::size_t>(at)] = static_cast<char>(value);
    spill(folder / "b.byj", bytes);
    EXPECT_NE(error_of(folder / "b.byj").find(named), std::string::npos) << error_of(folder / "b.byj");
  }
}

TEST(Byj, a_size_that_no_process_can_address_names_its_event) {
  BlockEncoder encoder;
  encoder.begin(7, 0, 0);
  encoder.add({.size = 16, .block = 0}, false);
  encoder.add({.size = ~std::uint64_t{0}, .block = 1}, false);
  BlockDecoder decoder;
  encoder.encode();
  decoder.decode(encoder.payload(), sample(0, 1, false).header, 0, false, "there");
  try {
    decoder.next();
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "there: event 8 asks for 18446744073709551615 bytes, more than a process can address");
  }
}

class WriterRefuses : public ::testing::Test {
 protected:
  WriterRefuses() : writer_(folder_ / "a.byj", sample(0).header) { writer_.add(good_); }
  Folder folder_;
  Event good_{.time_ns = 100, .size = 1, .block = 0};
  Writer writer_;
};

TEST_F(WriterRefuses, time_that_falls) { EXPECT_THROW(writer_.add({.time_ns = 99, .block = 1}), Error); }
TEST_F(WriterRefuses, a_block_out_of_turn) { EXPECT_THROW(writer_.add({.time_ns = 100, .block = 2}), Error); }
TEST_F(WriterRefuses, a_size_that_no_process_can_address) {
  EXPECT_NO_THROW(writer_.add({.time_ns = 100, .size = most_block_bytes, .block = 1}));
  EXPECT_THROW(writer_.add({.time_ns = 100, .size = most_block_bytes + 1, .block = 2}), Error);
}
TEST_F(WriterRefuses, a_free_of_a_block_never_given) {
  EXPECT_THROW(writer_.add({.time_ns = 100, .block = 1, .kind = Kind::free}), Error);
}
TEST_F(WriterRefuses, a_thread_never_added) {
  EXPECT_THROW(writer_.add({.time_ns = 100, .block = 1, .thread = 3}), Error);
}
TEST_F(WriterRefuses, a_stack_never_added) {
  EXPECT_THROW(writer_.add({.time_ns = 100, .block = 1, .site = 0}), Error);
}
TEST_F(WriterRefuses, a_tag_without_a_name) {
  EXPECT_THROW(writer_.add({.time_ns = 100, .block = 1, .tag = 9}), Error);
}
TEST_F(WriterRefuses, an_alignment_that_is_no_power_of_two) {
  EXPECT_THROW(writer_.add({.time_ns = 100, .block = 1, .alignment = 24, .kind = Kind::allocate_aligned}), Error);
}

}  // namespace
}  // namespace blockyard::journal::testing
