// libblockyard-frames.so: writes down when each frame of a program ended and how much processor time the process had
// taken by then. It has the recorder's hooks of frames and none of malloc, so the program's allocator is as it was.
//
// Each process that marks a frame writes a file of its own, PID.PROGRAM, into the folder that BLOCKYARD_FRAMES names. A
// mark costs two clock readings, the system calls getpid and gettid, and a store into a mapped page, which outlives a
// crash; every 4,096th makes room for more.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/observer.hpp"
#include "blockyard/detail/visibility.h"
#include "record/channel.hpp"
#include "record/linux/frames.hpp"

namespace blockyard::record {
namespace {

/// What a file consists of; Python reads it. All zeros: nothing was written there.
struct Mark {
  std::uint64_t at_ns;   ///< of CLOCK_MONOTONIC
  std::uint64_t cpu_ns;  ///< of all threads of the process
  std::uint32_t thread;
  std::uint32_t automatic;  ///< 1: of a buffer swap, 0: the program said so itself
};
static_assert(sizeof(Mark) == 24);

constexpr std::size_t marks_at_once = 4096;
constexpr std::size_t chunk_bytes = marks_at_once * sizeof(Mark);
static_assert(chunk_bytes % 4096 == 0);
constexpr int most_images = 64;  // a process that starts another program in its place is one more image

/// One process's file. A forked child finds `owner` to be another and begins its own.
struct Output {
  pid_t owner;
  int file;
  Mark* chunk;
  std::size_t held;  ///< marks in `chunk`
  std::uint64_t chunks;
  std::uint32_t is_explicit;
};
Output output{};
/// The process of the thread that has `output` to itself; 0: none has. A forked child may find its parent here, whose
/// thread it does not have.
pid_t writer = 0;

thread_local std::uint32_t depth __attribute__((tls_model("initial-exec"))) = 0;
thread_local std::uint32_t busy __attribute__((tls_model("initial-exec"))) = 0;

std::uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

int open_file(pid_t process) {
  const char* const folder = getenv("BLOCKYARD_FRAMES");
  if (folder == nullptr) return -1;
  for (int image = 0; image < most_images; ++image) {
    char path[4096];
    const int length = std::snprintf(path, sizeof path, "%s/%d-%d.%s", folder, static_cast<int>(process), image,
                                     program_invocation_short_name);
    if (length <= 0 || static_cast<std::size_t>(length) >= sizeof path) return -1;
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

void add_chunk() {
  if (output.chunk != nullptr) munmap(output.chunk, chunk_bytes);
  output.chunk = nullptr;
  const auto at = static_cast<off_t>(output.chunks * chunk_bytes);
  if (output.file < 0 || ftruncate(output.file, at + static_cast<off_t>(chunk_bytes)) != 0) return;
  // Populated, so that no frame pays for the pages of its marks one by one.
  void* const mapped = mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, output.file, at);
  if (mapped == MAP_FAILED) return;
  output.chunk = static_cast<Mark*>(mapped);
  output.held = 0;
  ++output.chunks;
}

void lock(pid_t process) {
  for (;;) {
    pid_t found = __atomic_load_n(&writer, __ATOMIC_RELAXED);
    if (found != process &&
        __atomic_compare_exchange_n(&writer, &found, process, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      return;
    }
  }
}

void write_mark(const Mark& mark) {
  const pid_t process = getpid();
  lock(process);
  // The parent's file and pages stay the parent's.
  if (output.owner != process) output = {process, open_file(process), nullptr, 0, 0, 0};
  if (mark.automatic == 0) output.is_explicit = 1;
  if (mark.automatic == 0 || output.is_explicit == 0) {
    if (output.chunk == nullptr || output.held == marks_at_once) add_chunk();
    if (output.chunk != nullptr) output.chunk[output.held++] = mark;
  }
  __atomic_store_n(&writer, 0, __ATOMIC_RELEASE);
}

void observe_frame_mark() { mark_frame(false); }
void observe_nothing(const char*) {}
void observe_block(const void*, std::size_t, std::size_t) {}
void observe_free(const void*) {}

constexpr base::Observer observer_table{base::observer_version, observe_frame_mark, observe_nothing, observe_block,
                                        observe_free};

}  // namespace

void mark_frame(bool automatic) {
  if (busy != 0) return;
  busy = 1;
  const int kept = errno;
  const Mark mark{read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_PROCESS_CPUTIME_ID),
                  static_cast<std::uint32_t>(syscall(SYS_gettid)), automatic ? 1u : 0u};
  write_mark(mark);
  errno = kept;
  busy = 0;
}

const char* frame_symbol() {
  const char* const name = getenv(frame_symbol_variable);
  return name != nullptr && *name != '\0' ? name : nullptr;
}

std::uint32_t& present_depth() { return depth; }

void notice_lookup() {}

}  // namespace blockyard::record

extern "C" {

BY_API const blockyard::base::Observer* by_recorder_observer();
const blockyard::base::Observer* by_recorder_observer() { return &blockyard::record::observer_table; }

BY_API void by_frame_mark();
void by_frame_mark() { blockyard::record::mark_frame(false); }

BY_API void by_phase_mark(const char* name);
void by_phase_mark(const char*) {}

}  // extern "C"
