// A row of samples.npy. Only this header states its layout. The replayer writes it, the passes over samples read it,
// and tests/replay/test_sample_row.py compares the Python package and docs/reference/campaign-folder.md with it.
#pragma once

#include <bit>
#include <cstdint>

namespace blockyard::samples {

/// Packed, little-endian. Rows lie at any address.
struct [[gnu::packed]] Row {
  std::uint32_t event;   ///< number in the journal; strictly rising from row to row
  std::uint8_t kind;     ///< 0 allocate, 1 zeroed, 2 aligned, 3 free, 4 reallocate, as journal::Kind
  std::uint8_t cause;    ///< why it was slow, a set of cause:: bits; 0: not read
  std::uint16_t thread;  ///< index of the journal's thread
  std::uint64_t size;    ///< bytes asked for; of a free, its block's
  std::uint64_t start;   ///< ns since the replay's clock started
  std::uint32_t call;    ///< ticks, including the timer's floor; the largest value means at least that
  std::uint32_t touch;   ///< ticks, including the timer's floor; 0 where nothing was touched
  std::uint32_t frame;   ///< frames ended before this event
};
static_assert(sizeof(Row) == 36);
static_assert(std::endian::native == std::endian::little, "samples.npy is little-endian");

/// The same for NumPy.
inline constexpr const char* row_descr =
    "[('event', '<u4'), ('kind', '|u1'), ('cause', '|u1'), ('thread', '<u2'), ('size', '<u8'), ('start', '<u8'), "
    "('call', '<u4'), ('touch', '<u4'), ('frame', '<u4')]";

inline constexpr std::uint8_t kind_free = 3;
inline constexpr std::uint8_t kind_reallocate = 4;

/// Bits of Row::cause: what happened to the event's thread.
namespace cause {
inline constexpr std::uint8_t looked = 1;          ///< alone: the allocator's own work
inline constexpr std::uint8_t fault_in_call = 2;   ///< minor
inline constexpr std::uint8_t fault_in_touch = 4;  ///< minor
inline constexpr std::uint8_t preempted = 8;
inline constexpr std::uint8_t slept = 16;
inline constexpr std::uint8_t migrated = 32;
inline constexpr std::uint8_t major_fault = 64;
inline constexpr std::uint8_t host_paused = 128;  ///< the virtual machine was not given that time
/// The machine did it and not the allocator: the attributed view leaves these events out.
inline constexpr std::uint8_t machine = preempted | migrated | host_paused;
}  // namespace cause

inline bool by_machine(const Row& row) { return (row.cause & cause::machine) != 0; }

}  // namespace blockyard::samples
