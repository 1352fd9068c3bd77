#include "replay/plan/plan_writer.hpp"

#include <xxhash.h>

#include <cstddef>
#include <cstring>

namespace blockyard::replay {

PlanWriter::PlanWriter(const std::string& path) : file_(path) {
  const PlanHeader room{};
  file_.write(&room, sizeof room);
}

PlanWriter::Thread& PlanWriter::open(std::uint32_t journal_thread) {
  if (journal_thread >= threads_.size()) threads_.resize(journal_thread + 1);
  Thread& thread = threads_[journal_thread];
  thread.ops = std::make_unique_for_overwrite<Op[]>(chunk_ops);
  thread.used = true;
  thread.entry.journal_thread = journal_thread;
  return thread;
}

void PlanWriter::flush(Thread& thread) {
  if (thread.buffered == 0) return;
  const std::size_t bytes = thread.buffered * sizeof(Op);
  thread.chunks.push_back({file_.offset(), XXH3_64bits(thread.ops.get(), bytes), thread.buffered});
  file_.write(thread.ops.get(), bytes);
  thread.entry.ops += thread.buffered;
  thread.buffered = 0;
}

void PlanWriter::add_preamble(std::uint32_t journal_thread, const std::vector<Op>& ops) {
  Thread& thread = of(journal_thread);
  thread.entry.preamble_offset = file_.offset();
  thread.entry.preamble_ops = ops.size();
  thread.entry.preamble_hash = XXH3_64bits(ops.data(), ops.size() * sizeof(Op));
  file_.write(ops.data(), ops.size() * sizeof(Op));
}

void PlanWriter::finish(PlanHeader& header, const std::vector<std::uint32_t>& frame_events,
                        const std::vector<std::uint32_t>& phase_events, const std::string& route_tables) {
  std::string threads;
  std::string chunks;
  header.threads = 0;
  header.chunks = 0;
  for (Thread& thread : threads_) {
    if (!thread.used) continue;
    flush(thread);
    thread.entry.chunks = static_cast<std::uint32_t>(thread.chunks.size());
    threads.append(reinterpret_cast<const char*>(&thread.entry), sizeof thread.entry);
    chunks.append(reinterpret_cast<const char*>(thread.chunks.data()), thread.chunks.size() * sizeof(PlanChunk));
    ++header.threads;
    idle_threads_ += thread.entry.ops == 0;
    header.chunks += thread.entry.chunks;
  }
  header.frames = static_cast<std::uint32_t>(frame_events.size());
  header.phases = static_cast<std::uint32_t>(phase_events.size());
  header.tables_offset = file_.offset();
  std::string tables = threads + chunks;
  for (const std::vector<std::uint32_t>* marks : {&frame_events, &phase_events}) {
    tables.append(reinterpret_cast<const char*>(marks->data()), marks->size() * sizeof(std::uint32_t));
  }
  tables.append(route_tables);
  header.tables_hash = XXH3_64bits(tables.data(), tables.size());
  file_.write(tables.data(), tables.size());
  std::memcpy(header.magic, plan_magic, sizeof header.magic);
  header.version = plan_version;
  header.file_bytes = file_.offset();
  header.header_hash = XXH3_64bits(&header, offsetof(PlanHeader, header_hash));
  file_.write_at(0, &header, sizeof header);
  file_.commit();
}

}  // namespace blockyard::replay
