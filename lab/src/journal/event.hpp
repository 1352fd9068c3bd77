// What a journal is made of: events, threads and the header that describes the recorded program.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace blockyard::journal {

/// What an event is. The numbers are the file's: never renumber.
enum class Kind : std::uint8_t {
  allocate = 0,          ///< malloc, operator new
  allocate_zeroed = 1,   ///< calloc; size is count * size
  allocate_aligned = 2,  ///< posix_memalign, aligned_alloc, memalign, valloc, pvalloc, aligned operator new
  free = 3,
  reallocate = 4,  ///< old_block ends, block begins; realloc(NULL, n) is an allocate, realloc(p, 0) a free
  frame_mark = 5,  ///< a frame of this thread ends here
  phase_mark = 6,  ///< a named phase of the program begins; `tag` is the index of its name in Header::names
};

/// The largest block that an event may ask for: addresses have 48 bits, and a plan keeps sizes in as many. Readers and
/// writers refuse more, so that whatever `check` passes can be replayed.
inline constexpr std::uint64_t most_block_bytes = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint64_t no_block = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint32_t no_site = std::numeric_limits<std::uint32_t>::max();

/// A journal's time, from seconds as people give them.
inline std::uint64_t to_ns(double seconds) { return static_cast<std::uint64_t>(std::llround(seconds * 1e9)); }

/// Blocks are dense: the n-th event of a journal that gives a block (allocations and reallocates, preamble included)
/// gives block n, counted from 0. `time_ns` never falls from one event to the next.
struct Event {
  std::uint64_t time_ns = 0;           ///< nanoseconds since the recording (or the window) began; the start of the call
  std::uint64_t duration_ns = 0;       ///< reallocate: from its start to its end; else 0
  std::uint64_t size = 0;              ///< bytes asked for, at most most_block_bytes
  std::uint64_t block = no_block;      ///< the block given; for free, the block that ends
  std::uint64_t old_block = no_block;  ///< reallocate: the block that ends
  std::uint64_t address = 0;           ///< the program's own pointer where the journal keeps addresses, else 0
  std::uint32_t alignment = 0;         ///< allocate_aligned: bytes, a power of two; else 0
  std::uint32_t thread = 0;            ///< index into Header::threads
  std::uint32_t site = no_site;        ///< call stack: a node of the journal's Stacks
  std::uint32_t tag = 0;               ///< index into Header::names of the program's tag; 0 is none
  Kind kind = Kind::allocate;
};

inline bool gives_block(Kind kind) {
  return kind == Kind::allocate || kind == Kind::allocate_zeroed || kind == Kind::allocate_aligned ||
         kind == Kind::reallocate;
}
inline bool takes_block(Kind kind) { return kind == Kind::free || kind == Kind::reallocate; }
/// Where takes_block(): the block that ends. Otherwise the block given, if any.
inline std::uint64_t ended_block(const Event& event) {
  return event.kind == Kind::reallocate ? event.old_block : event.block;
}
/// What is wrong with a size beyond most_block_bytes, for messages that begin with "event N" or "it".
inline std::string asks_too_much(std::uint64_t size) {
  return "asks for " + std::to_string(size) + " bytes, more than a process can address";
}

/// What is wrong when a block ends that is not alive, for messages that begin with the event.
inline std::string freed_but_not_live(std::uint64_t block) {
  return "block " + std::to_string(block) + " is freed but not live; see 'blockyard check'";
}

struct Thread {
  std::uint64_t id = 0;  ///< the kernel's thread id, or what the text form names
  std::string name;      ///< empty when never named
};

/// Facts of the recording. Threads and names may still grow while a journal is written; a reader sees all of them.
struct Header {
  std::string program;                ///< path or name of the recorded program
  std::vector<std::string> command;   ///< its arguments, the program's first
  std::string machine;                ///< CPU, kernel, distribution, in one line
  std::string recorder;               ///< what wrote the journal, with its version
  std::string allocator;              ///< file name of the library whose malloc was called; empty when unknown
  std::string recording;              ///< names the recording that all journals of one `blockyard record` come from
  std::vector<std::string> unseen;    ///< what the recorder could not see, one sentence each, without its stop
  std::vector<std::string> repairs;   ///< what a reader changed or made up, one sentence each, without its stop
  std::string started_at;             ///< ISO 8601, UTC; empty when unknown
  double ticks_per_ns = 0;            ///< the cycle clock's calibration; 0 when the source had none
  std::uint64_t preamble_events = 0;  ///< the first so many events restore the blocks alive at the window's start
  bool paced = true;                  ///< false: the times only give the order
  bool threads_known = true;          ///< false: the source kept no threads, and all events are of one
  bool has_addresses = false;         ///< Event::address is kept
  bool cut_at_end = false;  ///< the recording stopped before the program, so blocks alive at the end are no leak
  std::vector<Thread> threads;
  std::vector<std::string> names;  ///< of phases and tags; index 0 is the empty name
};

/// What is wrong with a journal, a text or a foreign file: one sentence that says what, where in the file (byte, line
/// or event number) and what to do. what() is shown to the user unchanged.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace blockyard::journal
