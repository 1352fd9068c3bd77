#include "replay/results/npy.hpp"

#include <zlib.h>

#include "journal/event.hpp"

namespace blockyard::replay {
namespace {

constexpr std::size_t npy_preface = 10;  // magic, version, header length
constexpr std::size_t npy_alignment = 64;

// A zip's numbers are little-endian and unaligned.
class Fields {
 public:
  Fields& u16(std::uint32_t value) {
    bytes_.push_back(static_cast<char>(value));
    bytes_.push_back(static_cast<char>(value >> 8));
    return *this;
  }
  Fields& u32(std::uint32_t value) { return u16(value & 0xffff).u16(value >> 16); }
  Fields& text(const std::string& value) {
    bytes_ += value;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t directory_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t version_needed = 20;
constexpr std::uint32_t stored = 0;
constexpr std::uint32_t first_of_january_1980 = 0x21;  // a constant, so that the same plan gives the same file
constexpr std::uint64_t crc_offset = 14;               // in the local header

}  // namespace

std::string npy_header(const std::string& descr, std::uint64_t rows) {
  std::string text = "{'descr': " + descr + ", 'fortran_order': False, 'shape': (" + std::to_string(rows) + ",), }";
  std::size_t total = npy_preface + text.size() + 1;
  total = (total + npy_alignment - 1) / npy_alignment * npy_alignment;
  text.append(total - npy_preface - text.size() - 1, ' ');
  text.push_back('\n');
  std::string header = "\x93NUMPY";
  header.push_back('\1');
  header.push_back('\0');
  header.push_back(static_cast<char>(text.size()));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

void NpzWriter::begin(const std::string& name, const std::string& descr, std::uint64_t rows) {
  end_member();
  Member member;
  member.name = name + ".npy";
  if (file_.offset() > 0xffff'ffffu)
    throw journal::Error("the journal has too many events for events.npz; replay a stretch of it");
  member.offset = static_cast<std::uint32_t>(file_.offset());
  Fields local;
  local.u32(local_signature).u16(version_needed).u16(0).u16(stored).u16(0).u16(first_of_january_1980);
  local.u32(0).u32(0).u32(0);  // checksum and sizes are filled in at the member's end
  local.u16(static_cast<std::uint32_t>(member.name.size())).u16(0).text(member.name);
  file_.write(local.bytes().data(), local.bytes().size());
  members_.push_back(member);
  open_ = true;
  const std::string header = npy_header(descr, rows);
  add(header.data(), header.size());
}

void NpzWriter::add(const void* bytes, std::size_t count) {
  Member& member = members_.back();
  member.crc = static_cast<std::uint32_t>(crc32_z(member.crc, static_cast<const Bytef*>(bytes), count));
  if (count > 0xffff'ffffu - member.bytes)
    throw journal::Error("the journal has too many events for events.npz; replay a stretch of it");
  member.bytes += static_cast<std::uint32_t>(count);
  file_.write(bytes, count);
}

void NpzWriter::end_member() {
  if (!open_) return;
  open_ = false;
  const Member& member = members_.back();
  Fields sums;
  sums.u32(member.crc).u32(member.bytes).u32(member.bytes);
  file_.write_at(member.offset + crc_offset, sums.bytes().data(), sums.bytes().size());
}

void NpzWriter::finish() {
  end_member();
  const std::uint64_t begin = file_.offset();
  for (const Member& member : members_) {
    Fields entry;
    entry.u32(directory_signature).u16(version_needed).u16(version_needed).u16(0).u16(stored);
    entry.u16(0).u16(first_of_january_1980).u32(member.crc).u32(member.bytes).u32(member.bytes);
    entry.u16(static_cast<std::uint32_t>(member.name.size())).u16(0).u16(0).u16(0).u16(0).u32(0).u32(member.offset);
    entry.text(member.name);
    file_.write(entry.bytes().data(), entry.bytes().size());
  }
  const auto count = static_cast<std::uint32_t>(members_.size());
  Fields end;
  end.u32(end_signature).u16(0).u16(0).u16(count).u16(count);
  end.u32(static_cast<std::uint32_t>(file_.offset() - begin)).u32(static_cast<std::uint32_t>(begin)).u16(0);
  file_.write(end.bytes().data(), end.bytes().size());
}

}  // namespace blockyard::replay
