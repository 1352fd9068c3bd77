#include "journal/byj_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "journal/last_error.hpp"

namespace blockyard::journal {

using format::SectionHead;

namespace {

/// The file is not damaged: a newer Blockyard can read it.
class Newer : public Error {
 public:
  using Error::Error;
};

}  // namespace

bool looks_like_byj(std::string_view first_bytes) {
  // A damaged magic number still gets the .byj reader's message instead of "no journal".
  return first_bytes.size() >= 4 && first_bytes.substr(0, 4) == std::string_view(format::magic.data(), 4);
}

ByjSource::ByjSource(const std::string& path, AtDamage at_damage) : path_(path), at_damage_(at_damage) {
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw Error(path + " can't be opened: " + last_error());
  try {
    struct stat facts {};
    if (::fstat(file_, &facts) != 0) throw Error(path + " can't be examined: " + last_error());
    if (!S_ISREG(facts.st_mode)) throw Error(path + " is a pipe or device; a .byj is read from a file");
    size_ = static_cast<std::uint64_t>(facts.st_size);
    read_preface();
    try {
      read_footer_ahead();
    } catch (const Error&) {
      // Without a footer the journal reads as that of a killed recorder, up to the damage.
      if (at_damage_ == AtDamage::fail) throw;
    }
  } catch (...) {
    ::close(file_);
    throw;
  }
}

ByjSource::~ByjSource() { ::close(file_); }

std::string ByjSource::place(std::uint64_t offset) const { return path_ + ", byte " + std::to_string(offset); }

void ByjSource::fail(const std::string& what) const { throw Error(place(offset_) + ": " + what); }

std::string ByjSource::read_bytes(std::uint64_t offset, std::size_t size) const {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(file_, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(place(offset + done) + ": reading failed: " + last_error());
    if (got == 0) throw Error(place(offset + done) + ": the file became shorter while it was read");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

ByjSource::Section ByjSource::read_section(std::uint64_t offset, SectionHead& head, std::string& payload) const {
  if (offset == size_) return Section::none;
  if (size_ - offset < sizeof head) return Section::torn;
  head = format::get<SectionHead>(read_bytes(offset, sizeof head), 0);
  if (!format::head_is_whole(head)) {
    throw Error(place(offset) + ": the section's head does not match its checksum; the file is damaged here");
  }
  if (head.payload_bytes > format::most_payload_bytes)
    throw Error(place(offset) + ": the section claims more than 256 MiB");
  if (size_ - offset - sizeof head < head.payload_bytes) return Section::torn;
  payload = read_bytes(offset + sizeof head, head.payload_bytes);
  if (format::hash(payload) != head.payload_hash) {
    throw Error(place(offset) + ": the section (" + std::to_string(head.payload_bytes) +
                " bytes) does not match its checksum; the file is damaged here");
  }
  return Section::whole;
}

void ByjSource::read_preface() {
  if (size_ < format::preface_bytes)
    throw Error(path_ + " is no journal: it has only " + std::to_string(size_) + " bytes");
  const std::string preface = read_bytes(0, format::preface_bytes);
  if (std::memcmp(preface.data(), format::magic.data(), format::magic.size()) != 0) {
    throw Error(path_ + " was a .byj journal, but its first bytes were changed (a transfer in text mode does that)");
  }
  version_ = format::get<std::uint16_t>(preface, format::version_offset);
  if (version_ != format::version_without_stacks && version_ != format::version_with_stacks) {
    throw Error(path_ + " has journal format version " + std::to_string(version_) +
                "; this blockyard reads versions 1 and 2, a newer one may read it");
  }
  const auto features = format::get<std::uint32_t>(preface, 12);
  if (format::get<std::uint16_t>(preface, 10) != 0 || (features & ~format::known_features) != 0) {
    throw Error(path_ + " needs features (" + std::to_string(features) +
                ") that this blockyard does not know; a newer one may");
  }
  offset_ = format::preface_bytes;
  SectionHead head{};
  if (read_section(offset_, head, payload_) != Section::whole) {
    fail("the journal ends inside its header; nothing was recorded, or the file was cut short");
  }
  if (head.type != format::section_head) fail("a HEAD section must stand here");
  apply_fields(payload_, header_, nullptr, nullptr, place(offset_));
  offset_ += sizeof head + payload_.size();
}

// The footer knows what HEAD could not: every thread, every name, the preamble's length.
void ByjSource::read_footer_ahead() {
  if (size_ < offset_ + sizeof(SectionHead) + format::tail_bytes) return;
  const std::string tail = read_bytes(size_ - format::tail_bytes, format::tail_bytes);
  if (std::memcmp(tail.data() + 8, format::end_magic.data(), format::end_magic.size()) != 0) return;
  const auto footer = format::get<std::uint64_t>(tail, 0);
  if (footer < offset_ || footer > size_ - format::tail_bytes - sizeof(SectionHead)) {
    throw Error(place(size_ - format::tail_bytes) + ": the tail points outside the file; the file is damaged here");
  }
  SectionHead head{};
  std::string payload;
  if (read_section(footer, head, payload) != Section::whole || head.type != format::section_footer) {
    throw Error(place(footer) + ": there is no footer where the tail says; the file is damaged");
  }
  Header complete;
  Index index;
  apply_fields(payload, complete, nullptr, &index, place(footer));
  header_ = std::move(complete);
  has_footer_ = true;
  try {
    read_stacks_ahead(index);
  } catch (const Error& error) {
    if (!survive(error, format::section_stacks))
      throw Error(std::string(error.what()) + "; `blockyard cut` saves the events");
  }
  stacks_ahead_ = true;
}

void ByjSource::read_stacks_ahead(const Index& index) {
  std::string payload;
  for (const std::uint64_t offset : index.stacks) {
    SectionHead head{};
    try {
      if (offset < format::preface_bytes || offset > size_ || read_section(offset, head, payload) != Section::whole ||
          (head.type != format::section_stacks && head.type != format::section_names)) {
        throw Error(place(offset) + ": there are no call stacks where the footer says; the file is damaged");
      }
      apply_stacks(head.type, payload, offset);
    } catch (const Error& error) {
      if (!format::head_is_whole(head) || head.type != format::section_names || !survive(error, head.type)) throw;
    }
  }
}

void ByjSource::apply_stacks(std::uint32_t type, const std::string& payload, std::uint64_t at) {
  if (!stack_decoder_) stack_decoder_ = std::make_unique<StackDecoder>();
  if (type == format::section_stacks) {
    stack_decoder_->tables(payload, stacks_, place(at));
  } else {
    stack_decoder_->names(payload, stacks_, place(at));
  }
}

// Whether reading goes on although a section of call stacks or of names is damaged: events without stacks are better
// than none, and so are stacks without names.
bool ByjSource::survive(const Error& damage, std::uint32_t section) {
  if (at_damage_ == AtDamage::fail) return false;
  const bool loses_stacks = section != format::section_names;
  if (stack_damage_.empty() || (loses_stacks && !lost_stacks_)) stack_damage_ = damage.what();
  lost_stacks_ |= loses_stacks;
  return true;
}

std::span<const Event> ByjSource::next() {
  while (!ended_) {
    if (in_block_) {
      const auto events = decoder_.next();
      if (!events.empty()) return events;
      in_block_ = false;
      events_ += decoder_.head().events;
      blocks_ = decoder_.end_block();
      time_ns_ = decoder_.end_time_ns();
    }
    awaits_more_ = false;
    if (advance()) continue;
    if (awaits_more_) return {};
    ended_ = true;
  }
  return {};
}

void ByjSource::grow() {
  struct stat facts {};
  if (::fstat(file_, &facts) != 0) throw Error(path_ + " can't be examined: " + last_error());
  size_ = std::max(size_, static_cast<std::uint64_t>(facts.st_size));
}

// Damage ends the journal, or throws an error that says what `cut` can do about it.
bool ByjSource::advance() {
  try {
    return read_next_block();
  } catch (const Newer&) {
    throw;
  } catch (const Error& error) {
    if (at_damage_ == AtDamage::end) {
      damage_ = error.what();
      return false;
    }
    throw Error(std::string(error.what()) + (events_ == 0
                                                 ? "; no event before it is whole"
                                                 : "; the " + std::to_string(events_) +
                                                       " events before it are whole, and `blockyard cut` saves them"));
  }
}

// Advances over TABL sections to the next block; false at the end of the journal.
bool ByjSource::read_next_block() {
  for (;;) {
    SectionHead head{};
    Section section = Section::none;
    try {
      section = read_section(offset_, head, payload_);
    } catch (const Error& error) {
      const bool is_stacks = head.type == format::section_stacks || head.type == format::section_names;
      if (!is_stacks || !format::head_is_whole(head) || head.payload_bytes > size_ - offset_ - sizeof head ||
          !survive(error, head.type))
        throw;
      section = Section::whole;
    }
    if (following_ && section != Section::whole) {
      awaits_more_ = true;
      return false;
    }
    if (section == Section::none) {
      notes_.push_back(
          "the journal has no footer (its recorder was stopped hard): it was read up to the last flushed block, " +
          std::to_string(events_) + " events");
      return false;
    }
    if (section == Section::torn) {
      end_torn();
      return false;
    }
    const std::uint64_t at = offset_;
    offset_ += sizeof head + payload_.size();
    if (head.type == format::section_table) {
      if (!has_footer_) apply_fields(payload_, header_, nullptr, nullptr, place(at));
    } else if (head.type == format::section_block) {
      decoder_.decode(payload_, header_, static_cast<std::uint32_t>(stacks_.nodes().size()), lost_stacks_, place(at));
      const auto& block = decoder_.head();
      if (block.first_event != events_ || block.first_block != blocks_ || block.base_time_ns != time_ns_) {
        throw Error(place(at) + ": the block does not follow the one before it (event " +
                    std::to_string(block.first_event) + " after " + std::to_string(events_) +
                    " events); a block is missing or doubled");
      }
      block_offset_ = at;
      if (!following_) seen_.blocks.push_back({at, block.first_event, block.first_block, block.base_time_ns});
      in_block_ = true;
      return true;
    } else if ((following_ || version_ != format::version_without_stacks) &&
               (head.type == format::section_stacks || head.type == format::section_names)) {
      if (!following_) seen_.stacks.push_back(at);
      if (stacks_ahead_ || lost_stacks_) continue;
      try {
        apply_stacks(head.type, payload_, at);
      } catch (const Error& error) {
        if (!survive(error, head.type)) throw;
      }
    } else if (head.type == format::section_footer) {
      offset_ = at;
      check_footer(payload_);
      offset_ = size_;
      return false;
    } else {
      throw Newer(place(at) + ": a section of unknown type stands here; a newer blockyard may read it");
    }
  }
}

void ByjSource::check_footer(const std::string& payload) {
  Header ignored;
  Totals totals;
  Index index;
  apply_fields(payload, ignored, &totals, &index, place(offset_));
  if (totals.events != events_ || totals.blocks != blocks_) {
    fail("the footer counts " + std::to_string(totals.events) + " events and " + std::to_string(totals.blocks) +
         " blocks; the journal holds " + std::to_string(events_) + " and " + std::to_string(blocks_));
  }
  if (!following_ && (index.blocks != seen_.blocks || index.stacks != seen_.stacks)) {
    fail("the footer's index does not name the sections that stand in the file");
  }
  const std::uint64_t end = offset_ + sizeof(SectionHead) + payload.size();
  if (size_ - end < format::tail_bytes) {
    if (following_) return;  // the footer itself is whole
    end_torn();
    return;
  }
  const std::string tail = read_bytes(end, format::tail_bytes);
  if (size_ - end != format::tail_bytes || format::get<std::uint64_t>(tail, 0) != offset_ ||
      std::memcmp(tail.data() + 8, format::end_magic.data(), format::end_magic.size()) != 0) {
    offset_ = end;
    fail("what follows the footer is not a journal's tail; bytes were appended or changed");
  }
}

void ByjSource::end_torn() {
  const std::string what = "the journal ends in the middle of a section (the file was cut short)";
  if (at_damage_ == AtDamage::fail) fail(what);
  notes_.push_back(place(offset_) + ": " + what +
                   (events_ == 0 ? "; no event before it is whole"
                                 : "; the " + std::to_string(events_) + " events before it are whole"));
  offset_ = size_;
}

}  // namespace blockyard::journal
