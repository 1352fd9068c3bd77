// What a recorded program and its collector share: a region of memory with one ring of records for each thread, and the
// two messages that hand it over. docs/design/recorder.md explains the protocol and why its order is right.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace blockyard::record {

inline constexpr std::uint32_t protocol_version = 7;

/// Kinds of records in a ring. The first word of each is `payload << 8 | kind`, the second its stamp.
enum class RecordKind : std::uint8_t {
  allocate = 0,          ///< payload: address; third word: packed size and alignment
  allocate_zeroed = 1,   ///< the same
  allocate_aligned = 2,  ///< the same
  free = 3,              ///< payload: address; stamped before the block can be given to anyone else
  reallocate_begin = 4,  ///< payload: the old address; stamped before the call
  reallocate_end = 5,    ///< payload: the new address or 0; third word: packed size; stamped after the call
  frame_mark = 6,
  phase_mark = 7,      ///< payload: bytes of the name, which follows
  thread_name = 8,     ///< payload: bytes of the name, which follows
  fork_mark = 9,       ///< this thread is about to fork; its stamp names the fork
  window_start = 10,   ///< by_journal_start()
  window_stop = 11,    ///< by_journal_stop()
  journal_open = 12,   ///< payload: bytes of the path, which follows; by_journal_open()
  journal_close = 13,  ///< by_journal_close()
  stack_node = 14,     ///< payload: the frame, or root_flag and why the stack ends; third word: the two nodes' numbers
  stack_clear = 15,    ///< the thread numbers its stacks from 1 again
  module = 16,         ///< payload: bytes of a ModuleFacts and the path behind it, which follow
  module_gone = 17,    ///< payload: where it began
  tag_path = 18,       ///< payload: bytes of a TagFacts and the name behind it, which follow
  // Of a program that ran before it was recorded: the third word is what the allocator says of the block's size, or 0.
  free_of_size = 19,              ///< the same as free
  reallocate_begin_of_size = 20,  ///< the same as reallocate_begin
};

/// Set in the kind of an event that has one more word, its last: the stack's number in this thread, 0 for none, and
/// above it the tag.
inline constexpr std::uint8_t site_flag = 0x40;
/// In the payload of a stack_node: no frame but the reason why the stack ends here, an unwind::End.
inline constexpr std::uint64_t root_flag = std::uint64_t{1} << 55;

/// Set in the kind of records from by_journal_alloc() and the functions like it: an engine's own allocator, which has a
/// journal apart from malloc's.
inline constexpr std::uint8_t engine_flag = 0x80;
inline constexpr std::size_t max_text_bytes = 4096;  ///< longest name or path in a record; longer ones are cut
inline constexpr std::size_t max_record_words = 2 + max_text_bytes / 8;

/// A module record's text: these, then the path. An empty path is the program's own.
struct ModuleFacts {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t bias;
  std::uint8_t build_id_bytes;
  std::uint8_t build_id[31];
};

inline constexpr std::uint32_t most_tag_paths = 1 << 14;  ///< different paths of tags of a process

/// A tag_path record's text: these, then the name that the path adds to its parent's.
struct TagFacts {
  std::uint32_t number;  ///< 1 to most_tag_paths
  std::uint32_t parent;  ///< 0: none
};

constexpr std::uint64_t pack(RecordKind kind, std::uint64_t payload, bool engine = false) {
  return payload << 8 | static_cast<std::uint8_t>(kind) | (engine ? engine_flag : 0u);
}
constexpr std::uint64_t pack_size(std::uint64_t size, unsigned alignment_log2) { return size << 8 | alignment_log2; }
constexpr std::uint64_t pack_pair(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }
constexpr RecordKind kind_of(std::uint64_t word) { return static_cast<RecordKind>(word & 0x3f); }
constexpr bool has_site(std::uint64_t word) { return (word & site_flag) != 0; }
constexpr bool engine_of(std::uint64_t word) { return (word & engine_flag) != 0; }
constexpr std::uint64_t payload_of(std::uint64_t word) { return word >> 8; }

/// Words of the record whose first word is `word`.
constexpr std::size_t words_of(std::uint64_t word) {
  const std::size_t site = has_site(word) ? 1 : 0;
  switch (kind_of(word)) {
    case RecordKind::allocate:
    case RecordKind::allocate_zeroed:
    case RecordKind::allocate_aligned:
    case RecordKind::reallocate_end:
    case RecordKind::free_of_size:
    case RecordKind::reallocate_begin_of_size:
      return 3 + site;
    case RecordKind::stack_node:
      return 3;
    case RecordKind::phase_mark:
    case RecordKind::thread_name:
    case RecordKind::journal_open:
    case RecordKind::module:
    case RecordKind::tag_path:
      return 2 + (payload_of(word) + 7) / 8;
    default:
      return 2 + site;
  }
}
/// The site word of a record; 0 when it has none.
constexpr std::uint64_t site_of(const std::uint64_t* record) {
  return has_site(record[0]) ? record[words_of(record[0]) - 1] : 0;
}

/// A page of a thread's own: the state of its rings. The thread's small ring follows it. Positions count words since
/// the slot was first used and never wrap.
struct alignas(64) Slot {
  // Written by the thread, apart from `stop`.
  std::atomic<std::uint64_t> claim{0};  ///< the thread may be writing up to here; set before the stamp is taken
  std::atomic<std::uint64_t> head{0};   ///< records up to here are complete
  std::atomic<std::uint32_t> stop{0};   ///< the collector wants no more records
  // Written by the collector.
  alignas(64) std::atomic<std::uint64_t> tail{0};  ///< words up to here were taken
  std::atomic<std::uint32_t> waiting{0};           ///< 1: the thread sleeps on this futex until its ring has room
  // Seldom written.
  alignas(64) std::atomic<std::uint32_t> owner{0};  ///< the kernel's id of the thread; 0: the slot is free
  std::atomic<std::uint32_t> serial{0};             ///< counts the threads that had this slot
  std::atomic<std::uint64_t> waits{0};              ///< times the ring was full
  std::atomic<std::uint64_t> waited{0};             ///< stamps' units spent waiting
  std::atomic<std::uint32_t> large{0};              ///< number of the thread's large ring, from 1; 0: none
  std::atomic<std::uint64_t> large_from{
      0};  ///< where it has one: words from here on lie in it, those before in the small ring
  // The program's own.
  Slot* next = nullptr;         ///< the slot that was mapped after this one
  void* spare_stack = nullptr;  ///< the end of the stack on which the slot's threads walk stacks that may be small
  void* walker = nullptr;       ///< of the threads that had this slot; an unwind::Walker
  std::atomic<const std::uint32_t*> busy{nullptr};  ///< ThreadState::busy of the thread that has it
};

inline constexpr std::uint32_t most_large_rings = 64;

/// The start of the region. The slots follow, each on a page and with its small ring behind it, then an empty page,
/// then the large rings. A program maps this page and the empty one; slots and large rings as its threads need them,
/// always the first that was never mapped.
struct alignas(64) Control {
  std::uint32_t version = protocol_version;
  std::uint32_t slot_count = 0;
  std::uint32_t large_count = 0;                         ///< at most most_large_rings
  std::uint64_t small_words = 0;                         ///< of a small ring, a power of two and a whole page
  std::uint64_t large_words = 0;                         ///< of a large ring, the same
  alignas(64) std::atomic<std::uint32_t> slots_used{0};  ///< slots from here on were never used
  std::atomic<std::uint32_t> slots_free{0};              ///< of those before, so many have no owner
  std::atomic<std::uint32_t> large_used{0};              ///< large rings from here on were never used
  std::atomic<std::uint64_t> large_free{0};              ///< a bit for each of those before that nobody has
  std::atomic<std::uint32_t> toggles{0};                 ///< times the window's signal came
  std::atomic<std::uint32_t> threads_refused{0};         ///< threads that found no slot and go unrecorded
  std::atomic<std::uint32_t> threads_left{0};            ///< threads that may not read the cycle counter any more
  std::atomic<std::uint32_t> engine_closed{0};           ///< journals of by_journal_open() that are complete
  std::atomic<std::uint32_t> engine_failed{0};           ///< 1: one of them could not be written completely
  std::atomic<std::uint64_t> heartbeat{0};               ///< rises while the collector lives
  // Of --verify-stacks.
  std::atomic<std::uint64_t> stacks_verified{0};
  std::atomic<std::uint64_t> stacks_differing{0};
  std::atomic<std::uint64_t> stacks_ended_by_us{0};    ///< ours ended earlier, with a marker
  std::atomic<std::uint64_t> stacks_ended_by_them{0};  ///< libunwind's ended earlier
};

inline constexpr std::size_t page_bytes = 4096;
static_assert(sizeof(Control) <= page_bytes && sizeof(Slot) <= page_bytes);

/// Where the parts of a region lie, in bytes from its start.
struct Layout {
  std::uint32_t slot_count;
  std::uint32_t large_count;
  std::uint64_t small_words;
  std::uint64_t large_words;

  explicit Layout(const Control& control)
      : Layout(control.slot_count, control.large_count, control.small_words, control.large_words) {}
  constexpr Layout(std::uint32_t slots, std::uint32_t larges, std::uint64_t small, std::uint64_t large)
      : slot_count(slots), large_count(larges), small_words(small), large_words(large) {}

  constexpr std::uint64_t slot_bytes() const { return page_bytes + small_words * sizeof(std::uint64_t); }
  constexpr std::uint64_t large_bytes() const { return large_words * sizeof(std::uint64_t); }
  constexpr std::uint64_t slot_at(std::uint32_t index) const { return page_bytes + index * slot_bytes(); }
  constexpr std::uint64_t empty_page_at() const { return slot_at(slot_count); }
  constexpr std::uint64_t large_at(std::uint32_t index) const {
    return empty_page_at() + page_bytes + index * large_bytes();
  }
  constexpr std::uint64_t bytes() const { return large_at(large_count); }
};

/// The small ring behind a slot.
inline std::uint64_t* small_ring(Slot& slot) {
  return reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(&slot) + page_bytes);
}

/// A region that is mapped as a whole, as the collector has it. Owns nothing.
struct Region {
  std::byte* base = nullptr;
  Control& control() const { return *reinterpret_cast<Control*>(base); }
  Slot& slot(std::uint32_t index) const { return *reinterpret_cast<Slot*>(base + Layout(control()).slot_at(index)); }
  /// `number` as in Slot::large.
  std::uint64_t* large_ring(std::uint32_t number) const {
    return reinterpret_cast<std::uint64_t*>(base + Layout(control()).large_at(number - 1));
  }
};

/// How events get stamps: one clock for all threads of all processes of a recording.
enum class StampClock : std::uint32_t {
  cycles = 0,     ///< the processor's invariant counter
  monotonic = 1,  ///< CLOCK_MONOTONIC in nanoseconds, where that counter can't be trusted
};

/// Why a program speaks to the collector.
enum class Purpose : std::uint32_t {
  record = 0,    ///< it is to be recorded, and awaits the answer
  forked = 1,    ///< a forked child, that may record later
  executes = 2,  ///< another program is about to take its place, or that of the process `spawned`: `program`
  stays = 3,     ///< that program could not be started
  leaves = 4,    ///< it records nothing more, and runs on
};

/// First message, from the program.
struct Hello {
  std::uint32_t version = protocol_version;
  std::int32_t pid = 0;                   ///< as the program sees itself
  std::uint64_t parent_key = 0;           ///< the recording that was inherited by fork, 0 for a fresh image
  std::uint64_t fork_stamp = 0;           ///< which fork of it, 0 when unknown
  std::uint64_t address_space_limit = 0;  ///< RLIMIT_AS in bytes
  std::uint32_t is_running = 0;           ///< 1: it ran before, so it has blocks that nobody saw begin
  std::uint32_t engine_only = 0;          ///< 1: by_journal_open() without a recorder; malloc is not recorded
  Purpose purpose = Purpose::record;
  std::int32_t spawned = 0;         ///< as the program sees it
  char allocator[64] = {};          ///< file name of the library whose malloc is called; cut, and ends with NUL
  char own_allocator[64] = {};      ///< of what has an allocator that stands in front of it; "." is the program
  std::uint32_t own_is_hooked = 0;  ///< 1: that one is recorded; 0: its calls could not be changed
  char program[512] = {};           ///< path; cut, and ends with NUL
};

/// The answer; the region's file descriptor comes with it when `key` is not 0.
struct Welcome {
  std::uint32_t version = protocol_version;
  StampClock clock = StampClock::cycles;
  std::uint64_t key = 0;            ///< names this recording of one process image; 0: not to be recorded
  std::int32_t signal = 0;          ///< toggles the window; 0: none
  std::uint32_t fences = 0;         ///< 1: the kernel has no expedited membarrier, so the program must fence by itself
  std::int32_t collector = 0;       ///< its process id; 0: it has none that the program could see
  std::uint32_t stack_depth = 0;    ///< most frames of a stack; 0: no stacks
  std::uint32_t verify_stacks = 0;  ///< 1: walk each a second time with libunwind
};

/// The page that a program with sleeping hooks shares with whoever wakes it: the file DIR/blockyard-asleep.PID.
struct AsleepPage {
  std::uint32_t version;   ///< protocol_version; 0 until the rest is valid
  std::int32_t pid;        ///< as the program sees itself
  std::uint32_t turn;      ///< written by whoever wakes: counts recordings from 1; 0: asleep
  std::uint32_t answered;  ///< the turn of which `failure` speaks
  char failure[112];       ///< a sentence without its stop; empty: the program is being recorded
  char socket[112];        ///< written before `turn`: the collector's, as the program sees it
};
inline constexpr const char* asleep_name = "blockyard-asleep.";
/// The variable that holds DIR, and asks for sleeping hooks.
inline constexpr const char* asleep_variable = "BLOCKYARD_ASLEEP";

/// The variable that holds the path of the collector's socket, which is also the name of an abstract one: a program may
/// see other files, or another network, than the collector.
inline constexpr const char* socket_variable = "BLOCKYARD_RECORD";
/// The variable that holds what `blockyard record` puts first in LD_PRELOAD.
inline constexpr const char* preload_variable = "BLOCKYARD_PRELOAD";
/// The variable that holds the value of --frame-symbol.
inline constexpr const char* frame_symbol_variable = "BLOCKYARD_FRAME_SYMBOL";
/// The limits of `blockyard budget --stop` (stop.hpp).
inline constexpr const char* stop_variable = "BLOCKYARD_STOP";

}  // namespace blockyard::record
