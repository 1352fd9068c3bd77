// Unwind tables: finds the record for an address in .eh_frame and runs its program up to there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/objects.hpp"

namespace blockyard::unwind {

/// The processor's registers by their numbers in DWARF (System V ABI for x86-64, figure 3.36).
inline constexpr unsigned register_rbp = 6;
inline constexpr unsigned register_rsp = 7;
inline constexpr unsigned register_return = 16;
inline constexpr unsigned register_count = 17;

/// A DWARF expression, where the table has it.
struct Expression {
  const std::uint8_t* begin = nullptr;
  const std::uint8_t* end = nullptr;
};

/// Where a caller's register is.
enum class Place : std::uint8_t {
  same,           ///< not touched
  undefined,      ///< lost; for the return address: this is the first frame of the thread
  at_cfa,         ///< in memory, at CFA + offset
  is_cfa,         ///< it is CFA + offset
  in_register,    ///< in the register `offset`
  at_expression,  ///< in memory, at the expression's value; the CFA is on its stack at the start
  is_expression,  ///< it is the expression's value
};

struct RegisterRule {
  Place place = Place::same;
  std::int64_t offset = 0;
  Expression expression;
};

/// How to get from a frame to its caller at one address. The CFA is the caller's stack pointer after the call returned.
struct Row {
  unsigned cfa_register = 0;
  std::int64_t cfa_offset = 0;
  Expression cfa_expression;  ///< in place of the two where begin is not nullptr
  RegisterRule registers[register_count];
  bool is_signal_frame = false;
};

/// What running a program needs; a few kilobytes, which the stack of a signal handler may not have.
struct Workspace {
  static constexpr unsigned most_remembered = 8;
  Row row;  ///< for the caller's result
  Row initial;
  Row remembered[most_remembered];
};

/// The row for `address` in the object's tables. False when they do not cover it or can't be understood. Reads only the
/// tables; allocates nothing. O(log records) and the length of the record's program.
bool find_row(const Object& object, std::uint64_t address, Workspace& space, Row& row);

/// Where the function that holds `address` begins. 0 where find_row() would find no record.
std::uint64_t find_function(const Object& object, std::uint64_t address);

}  // namespace blockyard::unwind
