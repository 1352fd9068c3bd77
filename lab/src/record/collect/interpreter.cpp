// Turns records into events.
#include "record/collect/interpreter.hpp"

#include <algorithm>
#include <cstring>

namespace blockyard::record {
namespace {

std::string text_of(const std::uint64_t* record) {
  std::string text(payload_of(record[0]), '\0');
  std::memcpy(text.data(), record + 2, text.size());
  return text;
}

journal::Kind kind_of_allocation(RecordKind kind) {
  switch (kind) {
    case RecordKind::allocate_zeroed:
      return journal::Kind::allocate_zeroed;
    case RecordKind::allocate_aligned:
      return journal::Kind::allocate_aligned;
    default:
      return journal::Kind::allocate;
  }
}

// An engine may claim more than any process has; a journal can't hold that size.
std::uint64_t size_of(std::uint64_t packed) { return std::min(packed >> 8, journal::most_block_bytes); }

}  // namespace

Interpreter::Interpreter(OutputSettings malloc_output, WindowPlan plan, std::vector<ThreadFacts>& threads)
    : settings_(std::move(malloc_output)),
      plan_(plan),
      threads_(threads),
      book_(settings_.stacks, settings_.header.program, settings_.ns_per_stamp),
      tags_(settings_.tags),
      scheduled_(plan.open_at != never) {
  settings_.stacks = book_.shared_tables();
  settings_.tags = tags_.shared_texts();
  if (!settings_.path.empty()) malloc_space_.output = std::make_unique<Output>(settings_, threads_);
}

Interpreter::~Interpreter() = default;

bool Interpreter::is_possible(const std::uint64_t* record) const {
  const Space& space = engine_of(record[0]) ? engine_space_ : malloc_space_;
  switch (kind_of(record[0])) {
    case RecordKind::allocate:
    case RecordKind::allocate_zeroed:
    case RecordKind::allocate_aligned:
      return !space.live.contains(payload_of(record[0]));
    case RecordKind::free:
    case RecordKind::free_of_size:
    case RecordKind::reallocate_begin:
    case RecordKind::reallocate_begin_of_size:
      return space.live.contains(payload_of(record[0]));
    default:
      return true;
  }
}

void Interpreter::prefetch(const std::uint64_t* record) const {
  switch (kind_of(record[0])) {
    case RecordKind::allocate:
    case RecordKind::allocate_zeroed:
    case RecordKind::allocate_aligned:
    case RecordKind::free:
    case RecordKind::free_of_size:
    case RecordKind::reallocate_begin:
    case RecordKind::reallocate_begin_of_size:
    case RecordKind::reallocate_end:
      (engine_of(record[0]) ? engine_space_ : malloc_space_).live.prefetch(payload_of(record[0]));
      break;
    default:
      break;
  }
}

void Interpreter::apply(std::uint32_t thread, std::uint64_t stamp, const std::uint64_t* record) {
  advance(stamp);
  Space& space = engine_of(record[0]) ? engine_space_ : malloc_space_;
  const std::uint64_t payload = payload_of(record[0]);
  const RecordKind kind = kind_of(record[0]);
  Origin origin;
  if (has_site(record[0])) origin = {book_.node(thread, site_of(record)), tags_.index(site_of(record))};
  switch (kind) {
    case RecordKind::allocate:
    case RecordKind::allocate_zeroed:
    case RecordKind::allocate_aligned: {
      LiveBlock block;
      block.size = size_of(record[2]);
      block.thread = thread;
      block.origin = origin;
      block.kind = kind_of_allocation(kind);
      if (kind == RecordKind::allocate_aligned) {
        block.alignment_log2 = static_cast<std::uint8_t>(std::min<std::uint64_t>(record[2] & 0xff, 31));
      }
      give(space, thread, stamp, payload, block);
      break;
    }
    case RecordKind::free:
    case RecordKind::free_of_size:
      if (const auto block = space.live.take(payload)) {
        if (space.output) space.output->free(stamp, thread, block->id, origin);
      } else {
        count_unknown(space, kind == RecordKind::free_of_size ? record[2] : 0);
      }
      break;
    case RecordKind::reallocate_begin:
    case RecordKind::reallocate_begin_of_size: {
      Pending& pending = space.pending[thread];
      pending = {payload, stamp, {}, 0, false, false};
      if (kind == RecordKind::reallocate_begin_of_size) pending.old_size = record[2];
      if (const auto block = space.live.take(payload)) {
        pending.block = *block;
        pending.known = true;
      }
      break;
    }
    case RecordKind::reallocate_end:
      end_reallocate(space, thread, stamp, payload, size_of(record[2]), origin);
      break;
    case RecordKind::frame_mark:
      for (Space* each : {&malloc_space_, &engine_space_}) {
        if (each->output) each->output->frame_mark(stamp, thread);
      }
      break;
    case RecordKind::phase_mark:
      for (Space* each : {&malloc_space_, &engine_space_}) {
        if (each->output) each->output->phase_mark(stamp, thread, text_of(record));
      }
      break;
    case RecordKind::thread_name:
      threads_[thread].name = text_of(record);
      thread_renamed(thread);
      break;
    case RecordKind::fork_mark:
      if (on_fork) on_fork(stamp, malloc_space_.live);
      break;
    case RecordKind::window_start:
      scheduled_ = false;
      if (!over_) open(stamp);
      break;
    case RecordKind::window_stop:
      scheduled_ = false;
      close(stamp, true);
      break;
    case RecordKind::journal_open:
      open_engine_journal(stamp, text_of(record));
      break;
    case RecordKind::journal_close:
      close_engine_journal(stamp);
      break;
    case RecordKind::stack_node:
    case RecordKind::stack_clear:
    case RecordKind::module:
    case RecordKind::module_gone:
      book_.apply(thread, stamp, record);
      break;
    case RecordKind::tag_path:
      // What must not allocate is in the journal even where it kept to that: 'blockyard budget' says so.
      if (const std::uint32_t tag = tags_.apply(record); tags_.forbids(tag)) {
        for (Space* each : {&malloc_space_, &engine_space_}) {
          if (each->output) each->output->tag_met(tag);
        }
      }
      break;
  }
}

// The address is about to be given. If a block is still thought to live there, its free was never seen (it went through
// a function that can't be hooked), or another thread is reallocating it and has released the address already.
// Such frees have the stack and the tag of what showed them.
void Interpreter::make_way(Space& space, std::uint32_t thread, std::uint64_t stamp, std::uint64_t address,
                           Origin origin) {
  for (auto& [owner, pending] : space.pending) {
    if (pending.old_address != address || !pending.known || pending.freed) continue;
    if (space.output) space.output->free(stamp, owner, pending.block.id, origin);
    pending.freed = true;
  }
  if (const auto older = space.live.take(address)) {
    if (space.output) space.output->free(stamp, thread, older->id, origin);
    ++repairs_.missed_frees;
  }
}

void Interpreter::give(Space& space, std::uint32_t thread, std::uint64_t stamp, std::uint64_t address,
                       LiveBlock block) {
  ++space.allocations;
  make_way(space, thread, stamp, address, block.origin);
  if (space.output) block.id = space.output->allocate(stamp, address, block);
  space.live.add(address, block);
}

void Interpreter::end_reallocate(Space& space, std::uint32_t thread, std::uint64_t stamp, std::uint64_t address,
                                 std::uint64_t size, Origin origin) {
  const auto found = space.pending.find(thread);
  if (found == space.pending.end()) return;
  const Pending pending = found->second;
  space.pending.erase(found);
  if (address == 0 && size != 0) {  // it failed: the old block is unchanged
    if (pending.known && !pending.freed) space.live.put_back(pending.old_address, pending.block);
    return;
  }
  if (!pending.known) count_unknown(space, pending.old_size);
  if (address == 0) {
    if (pending.known && !pending.freed && space.output) space.output->free(stamp, thread, pending.block.id, origin);
    return;
  }
  LiveBlock block;
  block.size = size;
  block.thread = thread;
  block.origin = origin;
  if (!pending.known || pending.freed) {
    if (pending.freed) ++repairs_.split_reallocates;
    give(space, thread, stamp, address, block);
    return;
  }
  make_way(space, thread, stamp, address, origin);
  if (space.output) {
    // A window that opened between start and end does not know the old block.
    block.id = pending.block.id == journal::no_block
                   ? space.output->allocate(stamp, address, block)
                   : space.output->reallocate(pending.begin, stamp, pending.block.id, address, block);
  }
  space.live.add(address, block);
}

void Interpreter::count_unknown(Space& space, std::uint64_t size) {
  ++repairs_.unknown_frees;
  ++space.unknown_frees;
  if (!window_open_) return;
  ++repairs_.before_frees;
  repairs_.before_bytes += size;
}

void Interpreter::open(std::uint64_t stamp) {
  if (window_open_) return;
  window_open_ = true;
  window_end_ = plan_.length > never - stamp ? never : stamp + plan_.length;
  for (Space* space : {&malloc_space_, &engine_space_}) {
    if (!space->output) continue;
    for (auto& [thread, pending] : space->pending) pending.block.id = journal::no_block;
    space->output->open_window(stamp, space->live);
  }
}

void Interpreter::close(std::uint64_t stamp, bool stopped) {
  if (!window_open_) return;
  window_open_ = false;
  window_end_ = never;
  for (Space* space : {&malloc_space_, &engine_space_}) {
    if (space->output) space->output->close_window(stamp, stopped);
  }
}

void Interpreter::advance(std::uint64_t stamp) {
  if (scheduled_ && stamp >= plan_.open_at) {
    scheduled_ = false;
    open(plan_.open_at);
  }
  if (!window_open_ || stamp < std::min(window_end_, plan_.close_at)) return;
  over_ = stamp >= plan_.close_at;
  close(std::min(window_end_, plan_.close_at), true);
}

void Interpreter::toggle(std::uint64_t stamp) {
  scheduled_ = false;
  if (window_open_) {
    close(stamp, true);
  } else if (!over_) {
    open(stamp);
  }
}

void Interpreter::thread_renamed(std::uint32_t thread) {
  for (Space* space : {&malloc_space_, &engine_space_}) {
    if (space->output) space->output->thread_renamed(thread);
  }
}

void Interpreter::flush() {
  for (Space* space : {&malloc_space_, &engine_space_}) {
    if (space->output) space->output->flush();
  }
}

void Interpreter::finish(std::uint64_t stamp, bool runs_on) {
  close(stamp, runs_on);
  if (engine_space_.output) close_engine_journal(stamp);
}

void Interpreter::open_engine_journal(std::uint64_t stamp, const std::string& path) {
  OutputSettings settings = settings_;
  settings.path = path;
  settings.overwrite = true;
  engine_space_.unknown_frees = 0;
  settings.unseen = [this]() -> std::vector<std::string> {
    const std::uint64_t frees = engine_space_.unknown_frees;
    if (frees == 0) return {};
    return {std::to_string(frees) + (frees == 1 ? " free matches" : " frees match") +
            " no block and is left out: the program allocated the block before by_journal_open or did not announce it, "
            "or frees it a second time"};
  };
  engine_space_.output = std::make_unique<Output>(std::move(settings), threads_);
  if (window_open_) engine_space_.output->open_window(stamp, engine_space_.live);
}

void Interpreter::close_engine_journal(std::uint64_t stamp) {
  if (!engine_space_.output) return;
  engine_space_.output->close_window(stamp, false);
  const auto& journals = engine_space_.output->journals();
  closed_engine_journals_.insert(closed_engine_journals_.end(), journals.begin(), journals.end());
  const bool complete =
      std::all_of(journals.begin(), journals.end(), [](const auto& journal) { return journal.error.empty(); });
  engine_space_ = Space();
  if (on_engine_closed) on_engine_closed(complete);
}

std::vector<JournalSummary> Interpreter::malloc_journals() const {
  return malloc_space_.output ? malloc_space_.output->journals() : std::vector<JournalSummary>();
}

std::vector<JournalSummary> Interpreter::journals() const {
  std::vector<JournalSummary> all = malloc_journals();
  const auto append = [&](const std::vector<JournalSummary>& some) { all.insert(all.end(), some.begin(), some.end()); };
  append(closed_engine_journals_);
  if (engine_space_.output) append(engine_space_.output->journals());
  return all;
}

}  // namespace blockyard::record
