// Reads a .byj journal section by section in bounded memory, and checks everything that the format promises.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "journal/block_decoder.hpp"
#include "journal/format.hpp"
#include "journal/header_codec.hpp"
#include "journal/reader.hpp"
#include "journal/stack_codec.hpp"

namespace blockyard::journal {

class ByjSource final : public Source {
 public:
  explicit ByjSource(const std::string& path, AtDamage at_damage = AtDamage::fail);
  ~ByjSource() override;
  ByjSource(const ByjSource&) = delete;
  ByjSource& operator=(const ByjSource&) = delete;

  const Header& header() const override { return header_; }
  const Stacks& stacks() const override { return stacks_; }
  /// The same, for who finds names while the journal is written.
  Stacks& nameable_stacks() { return stacks_; }
  bool is_complete() const override { return stacks_ahead_; }
  std::span<const Event> next() override;
  std::uint64_t bytes_read() const override { return offset_; }
  std::uint64_t bytes_total() const override { return size_; }
  std::span<const std::string> notes() const override { return notes_; }
  std::string_view form() const override { return "byj"; }

  /// From now on the file's end is that of what is written so far: next() returns empty there, and after grow() it goes
  /// on. Memory then grows with the stacks alone.
  void follow() { following_ = true; }
  /// Looks how long the file is now. Throws Error.
  void grow();
  /// Whether next() is at the footer, or at damage: no more follows.
  bool has_ended() const { return ended_; }

  /// The place of the section whose events next() returned last, for messages.
  std::uint64_t block_offset() const { return block_offset_; }
  /// With AtDamage::end, after next() returned empty: where and how the file is damaged. Empty when it is whole, or was
  /// only cut short, which a note says.
  const std::string& damage() const { return damage_; }
  /// With AtDamage::end, after next() returned empty: where and how the call stacks or their names are damaged. Empty
  /// when they are whole.
  const std::string& stack_damage() const { return stack_damage_; }
  /// Whether events lost their call stacks by it, not names alone.
  bool lost_stacks() const { return lost_stacks_; }
  /// Of the file: 1 holds neither call stacks nor tags.
  std::uint16_t version() const { return version_; }
  /// Bytes of the file as they stand there: next() goes on where it was. Throws Error when the file does not have them.
  std::string read_bytes(std::uint64_t offset, std::size_t size) const;

 private:
  enum class Section { whole, torn, none };
  [[noreturn]] void fail(const std::string& what) const;
  std::string place(std::uint64_t offset) const;
  Section read_section(std::uint64_t offset, format::SectionHead& head, std::string& payload) const;
  void read_preface();
  void read_footer_ahead();
  void read_stacks_ahead(const Index& index);
  void apply_stacks(std::uint32_t type, const std::string& payload, std::uint64_t at);
  bool survive(const Error& damage, std::uint32_t section);
  bool advance();
  bool read_next_block();
  void check_footer(const std::string& payload);
  void end_torn();

  std::string path_;
  int file_ = -1;
  AtDamage at_damage_;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t block_offset_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t time_ns_ = 0;
  std::uint16_t version_ = 0;
  bool has_footer_ = false;
  bool in_block_ = false;
  bool ended_ = false;
  bool following_ = false;
  bool awaits_more_ = false;  ///< following: the file ends here for now
  Header header_;
  Stacks stacks_;
  std::unique_ptr<StackDecoder> stack_decoder_;  ///< most journals have no stacks
  bool stacks_ahead_ = false;                    ///< stacks_ is complete: the footer led to all of them
  Index seen_;
  std::vector<std::string> notes_;
  std::string damage_;
  std::string stack_damage_;
  bool lost_stacks_ = false;
  std::string payload_;
  BlockDecoder decoder_;
};

/// Whether a file that starts with these bytes is a .byj journal, perhaps a damaged one.
bool looks_like_byj(std::string_view first_bytes);

}  // namespace blockyard::journal
