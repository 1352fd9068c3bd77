// What a recorder wants to know of a running program, as a function table: the library calls through it and knows no
// recorder. Empty unless a recorder filled it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::base {

/// Filled by a recorder, constant from then on. Every member may be called from any thread, allocates nothing and keeps
/// errno.
struct Observer {
  std::uint32_t version;                 ///< observer_version of whoever filled it
  void (*frame_mark)();                  ///< a frame of the calling thread ends
  void (*phase_mark)(const char* name);  ///< a phase begins; `name` is copied
  /// A block of a pool or a lifetime was handed out; called after the fact. `alignment` as it was asked for, 0 for
  /// none.
  void (*block_allocated)(const void* block, std::size_t size, std::size_t alignment);
  void (*block_freed)(const void* block);  ///< called before the block can be handed out again
};

inline constexpr std::uint32_t observer_version = 2;

/// The recorder exports a C function of this name and type; the library looks it up once per process.
inline constexpr const char* observer_symbol = "by_recorder_observer";
using FindObserver = const Observer* (*)();

/// The recorder's table, or nullptr when no recorder was loaded when this was first called. The first call searches the
/// loaded objects (microseconds); later ones are a load.
const Observer* observer();

}  // namespace blockyard::base
