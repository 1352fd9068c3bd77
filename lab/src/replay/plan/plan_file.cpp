#include "replay/plan/plan_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "journal/event.hpp"
#include "journal/routes.hpp"

namespace blockyard::replay {

PlanFile::PlanFile(const std::string& path) : path_(path) {
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw journal::Error(path + " can't be read: " + std::strerror(errno));
  try {
    struct stat facts {};
    if (fstat(file_, &facts) != 0 || !S_ISREG(facts.st_mode)) throw journal::Error(path + " is not a file");
    if (!read(0, &header_, sizeof header_) || std::memcmp(header_.magic, plan_magic, sizeof plan_magic) != 0) {
      throw journal::Error(path + " is not a plan; 'blockyard-replay plan JOURNAL -o PLAN' makes one");
    }
    if (header_.version != plan_version) {
      throw journal::Error(path + " is a plan of format " + std::to_string(header_.version) +
                           " and this program reads format " + std::to_string(plan_version) +
                           "; plan the journal again");
    }
    if (header_.header_hash != XXH3_64bits(&header_, offsetof(PlanHeader, header_hash))) damaged("its header");
    if (static_cast<std::uint64_t>(facts.st_size) != header_.file_bytes) damaged("its length");
    read_tables();
    check_preambles();
  } catch (...) {
    close(file_);
    throw;
  }
}

PlanFile::~PlanFile() { close(file_); }

void PlanFile::read_tables() {
  const std::size_t groups = header_.routes != 0 ? (header_.slots + std::size_t{slot_group} - 1) / slot_group : 0;
  const std::size_t bytes = header_.threads * sizeof(PlanThread) + header_.chunks * sizeof(PlanChunk) +
                            (std::size_t{header_.frames} + header_.phases) * sizeof(std::uint32_t) +
                            header_.routes * sizeof(PlanRoute) + header_.generations * sizeof(std::uint64_t) +
                            groups * sizeof(std::uint32_t);
  if (header_.tables_offset + bytes != header_.file_bytes) damaged("its tables");
  std::vector<char> tables(bytes);
  if (!read(header_.tables_offset, tables.data(), tables.size())) damaged("its tables");
  if (XXH3_64bits(tables.data(), tables.size()) != header_.tables_hash) damaged("its tables");
  const char* at = tables.data();
  const auto copy_out = [&at](auto& list, std::size_t count) {
    list.resize(count);
    const std::size_t size = count * sizeof(list[0]);
    if (size != 0) std::memcpy(list.data(), at, size);
    at += size;
  };
  copy_out(threads_, header_.threads);
  copy_out(chunks_, header_.chunks);
  copy_out(frames_, header_.frames);
  copy_out(phases_, header_.phases);
  copy_out(routes_, header_.routes);
  copy_out(generations_, header_.generations);
  copy_out(routes_of_groups_, groups);
  check_routes();
  std::size_t chunk = 0;
  for (const PlanThread& thread : threads_) {
    std::uint64_t ops = 0;
    if (thread.chunks > chunks_.size() - chunk) damaged("its tables");
    for (const std::size_t end = chunk + thread.chunks; chunk < end; ++chunk) {
      if (chunks_[chunk].ops > chunk_ops) damaged("its tables");
      ops += chunks_[chunk].ops;
    }
    if (ops != thread.ops) damaged("its tables");
  }
}

void PlanFile::check_routes() const {
  for (const PlanRoute& route : routes_) {
    const bool known = route.kind != 0 && route.kind <= journal::last_route_kind;
    const bool inside = route.first_generation <= generations_.size() &&
                        route.generations <= generations_.size() - route.first_generation;
    if (!known || !inside || route.alignment_log2 >= 32) damaged("a route");
  }
  for (const std::uint32_t route : routes_of_groups_) {
    if (route != none && route >= routes_.size()) damaged("a route");
  }
}

void PlanFile::check_preambles() const {
  for (const PlanThread& thread : threads_) {
    if (thread.preamble_ops == 0) continue;
    if (thread.preamble_ops > header_.slots) damaged("a preamble");
    std::vector<Op> ops(thread.preamble_ops);
    if (!read(thread.preamble_offset, ops.data(), ops.size() * sizeof(Op))) damaged("a preamble");
    if (XXH3_64bits(ops.data(), ops.size() * sizeof(Op)) != thread.preamble_hash) damaged("a preamble");
    for (const Op& op : ops) {
      if (op.kind >= first_special_kind || !is_sound(op)) damaged("a preamble");
    }
  }
}

void PlanFile::for_each_chunk(std::size_t thread, const std::function<void(std::span<const Op>)>& visit) const {
  std::size_t chunk = 0;
  for (std::size_t before = 0; before < thread; ++before) chunk += threads_[before].chunks;
  const auto ops = std::make_unique_for_overwrite<Op[]>(chunk_ops);
  for (const std::size_t end = chunk + threads_[thread].chunks; chunk < end; ++chunk) {
    read_chunk(chunk, ops.get());
    visit({ops.get(), chunks_[chunk].ops});
  }
}

void PlanFile::read_chunk(std::size_t chunk, Op* ops) const {
  const PlanChunk& entry = chunks_[chunk];
  if (!read(entry.offset, ops, entry.ops * sizeof(Op))) damaged("a chunk");
  if (XXH3_64bits(ops, entry.ops * sizeof(Op)) != entry.hash) damaged("a chunk");
  for (std::size_t i = 0; i < entry.ops; ++i) {
    if (!is_sound(ops[i])) damaged("an event");
  }
}

bool PlanFile::read(std::uint64_t offset, void* bytes, std::size_t count) const {
  char* into = static_cast<char*>(bytes);
  while (count != 0) {
    const ssize_t got = pread(file_, into, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

bool PlanFile::is_sound(const Op& op) const {
  if (op.kind == kind_pause) return true;
  if (op.kind == kind_frame_end) return header_.routes != 0;
  if (op.kind == kind_await_rewind) {
    return op.slot < routes_.size() &&
           routes_[op.slot].kind == static_cast<std::uint8_t>(journal::RouteKind::rewindable);
  }
  return op.kind <= static_cast<std::uint8_t>(journal::Kind::reallocate) && op.slot < header_.slots &&
         op.alignment_log2 >= natural_alignment_log2 && op.alignment_log2 < 32;
}

void PlanFile::damaged(const char* how) const {
  throw journal::Error(path_ + " is damaged (" + how + " is not as it was written); plan the journal again");
}

}  // namespace blockyard::replay
