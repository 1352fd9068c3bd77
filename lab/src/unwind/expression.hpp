// DWARF expressions, with numbers where the registers are known and with terms where only the code is.
#pragma once

#include <cstdint>

#include "unwind/frame_info.hpp"

namespace blockyard::unwind {

/// A value that a rule may have: a number, a base plus an offset, or what lies in memory there plus another offset.
struct Term {
  enum class Base : std::uint8_t { number, rsp, rbp, cfa };
  Base base = Base::number;
  bool is_loaded = false;   ///< the value is *(base + offset) + after; else base + offset
  std::int64_t offset = 0;  ///< the number itself, with Base::number
  std::int64_t after = 0;
};

/// What an expression may ask for. Each member returns false for what it can't give.
class Environment {
 public:
  // Not pure: the C++ library, which defines what a call of a pure function does, is not linked.
  virtual bool value_of(std::uint64_t, Term&) { return false; }
  virtual bool load(const Term&, Term&) { return false; }

 protected:
  ~Environment() = default;
};

/// Evaluates `expression` on a stack that holds `*initial` (nullptr: nothing). False when it is not one that
/// `environment` can answer, or is broken.
bool evaluate(const Expression& expression, Environment& environment, const Term* initial, Term& result);

}  // namespace blockyard::unwind
