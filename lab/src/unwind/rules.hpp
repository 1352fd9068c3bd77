// Unwind rules, boiled down to what a walk of stack pointers, frame pointers and return addresses needs, and a cache of
// them by address for all threads.
#pragma once

#include <cstdint>

#include "unwind/expression.hpp"

namespace blockyard::unwind {

/// Why a walk ended. The numbers are those of a journal's end markers: never renumber.
enum class End : std::uint8_t {
  complete = 0,       ///< no marker: the thread begins here
  depth = 1,          ///< as many frames as were asked for
  no_rules = 2,       ///< no unwind tables for the code: JIT, assembly, stripped of them
  outside_stack = 3,  ///< the next frame would lie outside of the thread's stack
  bad_return = 4,     ///< the return address points at no code
  unreadable = 5,     ///< a word of the stack can't be read
  unknown = 6,
};

/// An address to look up, and whether it is exact: a return address has been decremented, because the call may be the
/// last instruction of its function; a signal interrupts at an instruction, and that address is exact.
struct Address {
  std::uint64_t bits;  ///< address * 2 + exact

  static Address of_call(std::uint64_t return_address) { return {(return_address - 1) << 1}; }
  static Address exact(std::uint64_t pc) { return {pc << 1 | 1}; }
  std::uint64_t value() const { return bits >> 1; }
  bool is_exact() const { return (bits & 1) != 0; }
  /// What the instruction pointer held in the frame.
  std::uint64_t instruction_pointer() const { return is_exact() ? value() : value() + 1; }
  friend bool operator==(const Address& left, const Address& right) { return left.bits == right.bits; }
};

/// Addresses of programs have 47 bits.
inline constexpr std::uint64_t address_limit = std::uint64_t{1} << 47;

/// What to do at an address, in one word; 0 is no rule.
///   bits 0 to 2   what kind
///   bit 3         a step: the caller's rbp is in memory; an end: no call precedes the address, so somebody wrote it
///                 there: it is the function to which a fiber's first one returns
///   bits 16 to 31 a step: where, in words from the CFA; special: index of the rule
///   bits 32 to 63 a step: CFA - rsp or CFA - rbp in bytes; an end: the reason
using PackedRule = std::uint64_t;

enum class RuleKind : std::uint8_t {
  none = 0,
  from_rsp = 1,  ///< CFA is rsp + n, the return address lies at CFA - 8
  from_rbp = 2,  ///< the same with rbp
  special = 3,   ///< one of the longer rules
  end = 4,
  full = 5,  ///< needs registers other than those: the walk starts again and follows all of them
};

constexpr RuleKind kind_of(PackedRule rule) { return static_cast<RuleKind>(rule & 7); }
constexpr bool saves_rbp(PackedRule rule) { return (rule & 8) != 0; }
constexpr PackedRule entry_bit = 8;
constexpr bool is_entry(PackedRule rule) { return (rule & entry_bit) != 0; }
constexpr std::int64_t rbp_offset(PackedRule rule) { return std::int64_t{static_cast<std::int16_t>(rule >> 16)} * 8; }
constexpr std::int64_t cfa_offset(PackedRule rule) { return static_cast<std::int32_t>(rule >> 32); }
/// The rule of nearly all code that has a frame pointer: CFA is rbp + 16, the caller's rbp lies at CFA - 16.
constexpr PackedRule frame_pointer_rule = PackedRule{16} << 32 | PackedRule{0xfffe} << 16 | 8 | 2;
constexpr unsigned special_index(PackedRule rule) { return rule >> 16 & 0xffff; }
constexpr End end_of(PackedRule rule) { return static_cast<End>(rule >> 32); }

/// A rule that does not fit a word: signal frames, stacks that a function realigned. The places are never loaded terms.
struct SpecialRule {
  Term cfa;
  Term return_place;
  Term rbp_place;
  bool rbp_is_saved = false;
  bool rbp_is_lost = false;
  bool is_signal_frame = false;
};

/// Finds the rule for `address` in the tables and caches it. About a microsecond; allocates nothing.
PackedRule make_rule(Address address, Workspace& space);

/// In a forked child, before its first walk: a thread that the child does not have may have been adding a rule.
void forget_rule_being_added();

/// The rule that special_index() names.
const SpecialRule& special_rule(unsigned index);

/// The cache: sets of four words of key and rule each, for all threads. Lock-free. A reader that meets a write takes
/// what it read for a miss.
class RuleCache {
 public:
  /// The rule for `address`, or 0.
  PackedRule find(Address address) const {
    const Set& set = sets_[index_of(address)];
    for (const Entry& entry : set.entries) {
      const std::uint64_t key = __atomic_load_n(&entry.key, __ATOMIC_ACQUIRE);
      if ((key & key_mask) != address.bits) continue;
      const PackedRule rule = __atomic_load_n(&entry.rule, __ATOMIC_ACQUIRE);
      // The key's upper bits count its writes, so an entry that was replaced in between differs.
      if (__atomic_load_n(&entry.key, __ATOMIC_RELAXED) == key) return rule;
    }
    return 0;
  }
  void insert(Address address, PackedRule rule);
  void clear();
  /// Maps the memory, once per process; false when there is none. Thread-safe.
  bool prepare();

 private:
  struct Entry {
    std::uint64_t key;
    PackedRule rule;
  };
  struct alignas(64) Set {
    Entry entries[4];
  };
  static constexpr std::uint64_t key_mask = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint64_t being_written = key_mask;  // no program's address
  static constexpr unsigned set_bits = 14;  // 65,536 rules in 1 MiB, of which only what is used is touched

  static std::uint64_t index_of(Address address) {
    return (address.bits * std::uint64_t{0x9e3779b97f4a7c15}) >> (64 - set_bits);
  }

  Set* sets_ = nullptr;
};

extern RuleCache rule_cache;

}  // namespace blockyard::unwind
