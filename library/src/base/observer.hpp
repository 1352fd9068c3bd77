// The observer: a function table through which a recorder learns of marks and blocks. The library knows no recorder;
// the table is empty unless one fills it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::base {

/// Filled by a recorder, and constant from then on. Any thread may call any member. They allocate nothing and keep
/// errno.
struct Observer {
  std::uint32_t version;                 ///< the recorder's observer_version
  void (*frame_mark)();                  ///< a frame of the calling thread ends
  void (*phase_mark)(const char* name);  ///< a phase begins; `name` is copied
  /// A block of a pool or a lifetime was handed out. `alignment` is the requested one, 0 for none.
  void (*block_allocated)(const void* block, std::size_t size, std::size_t alignment);
  void (*block_freed)(const void* block);  ///< before the block can be handed out again
};

inline constexpr std::uint32_t observer_version = 2;

/// The recorder exports a C function of this name and type. The library looks it up once per process.
inline constexpr const char* observer_symbol = "by_recorder_observer";
using FindObserver = const Observer* (*)();

/// Where the library keeps what it found, a pointer to an Observer of this version. A recorder that comes into the
/// running program finds it by this name, and puts its table there.
inline constexpr const char* observer_place_symbol = "by_observer_2";

/// The recorder's table, or nullptr if no recorder was loaded at the first call. The first call searches the loaded
/// objects, which takes microseconds; later ones are a load.
const Observer* observer();

/// The same for blocks: nullptr also where BLOCKYARD_OBSERVED=0 in the environment leaves them out of recordings.
const Observer* block_observer();

}  // namespace blockyard::base
