#include "unwind/rules.hpp"

#include <cstring>

#include <sys/mman.h>

#include "unwind/objects.hpp"
#include "unwind/readable.hpp"

namespace blockyard::unwind {
namespace {

constexpr unsigned most_special = 256;
SpecialRule special_rules[most_special];
unsigned special_count = 0;
unsigned special_lock = 0;

PackedRule pack_end(End why) { return static_cast<PackedRule>(RuleKind::end) | static_cast<PackedRule>(why) << 32; }

/// Knows rsp and rbp by name and the instruction pointer by value, so that what an expression says of them holds
/// whenever the address is met.
class AtAddress final : public Environment {
 public:
  explicit AtAddress(std::uint64_t instruction_pointer) : instruction_pointer_(instruction_pointer) {}

  bool value_of(std::uint64_t number, Term& value) override {
    value = Term{};
    if (number == register_rsp) {
      value.base = Term::Base::rsp;
    } else if (number == register_rbp) {
      value.base = Term::Base::rbp;
    } else if (number == register_return) {
      value.offset = static_cast<std::int64_t>(instruction_pointer_);
    } else {
      return false;
    }
    return true;
  }
  bool load(const Term& address, Term& value) override {
    if (address.is_loaded || address.base == Term::Base::number) return false;
    value = address;
    value.is_loaded = true;
    return true;
  }

 private:
  std::uint64_t instruction_pointer_;
};

bool are_equal(const Term& left, const Term& right) {
  return left.base == right.base && left.is_loaded == right.is_loaded && left.offset == right.offset &&
         left.after == right.after;
}

bool are_equal(const SpecialRule& left, const SpecialRule& right) {
  return are_equal(left.cfa, right.cfa) && are_equal(left.return_place, right.return_place) &&
         are_equal(left.rbp_place, right.rbp_place) && left.rbp_is_saved == right.rbp_is_saved &&
         left.rbp_is_lost == right.rbp_is_lost && left.is_signal_frame == right.is_signal_frame;
}

// Programs have a handful of them, so a search from the start is quick.
PackedRule pack_special(const SpecialRule& rule) {
  while (__atomic_exchange_n(&special_lock, 1u, __ATOMIC_ACQUIRE) != 0) {
  }
  unsigned index = 0;
  while (index < special_count && !are_equal(special_rules[index], rule)) ++index;
  if (index == special_count && special_count < most_special) {
    special_rules[index] = rule;
    __atomic_store_n(&special_count, index + 1, __ATOMIC_RELEASE);  // last: a fork may come in between
  }
  __atomic_store_n(&special_lock, 0u, __ATOMIC_RELEASE);
  if (index == most_special) return static_cast<PackedRule>(RuleKind::full);
  return static_cast<PackedRule>(RuleKind::special) | PackedRule{index} << 16;
}

bool find_place(const RegisterRule& rule, Environment& environment, Term& place) {
  const Term cfa{Term::Base::cfa, false, 0, 0};
  if (rule.place == Place::at_cfa) {
    place = cfa;
    place.offset = rule.offset;
    return true;
  }
  return rule.place == Place::at_expression && evaluate(rule.expression, environment, &cfa, place) &&
         !place.is_loaded && place.base != Term::Base::number;
}

// Whether the caller's rsp is the CFA, as for every ordinary frame. A signal frame says so by an expression.
bool keeps_rsp(const Row& row, const SpecialRule& rule, Environment& environment) {
  const RegisterRule& rsp = row.registers[register_rsp];
  if (rsp.place == Place::same || (rsp.place == Place::is_cfa && rsp.offset == 0)) return true;
  Term place;
  if (!find_place(rsp, environment, place)) return false;
  place.is_loaded = true;
  return are_equal(place, rule.cfa);
}

bool fits_a_word(const SpecialRule& rule) {
  const bool plain_cfa = !rule.cfa.is_loaded && rule.cfa.offset == static_cast<std::int32_t>(rule.cfa.offset);
  const bool plain_return = rule.return_place.base == Term::Base::cfa && rule.return_place.offset == -8;
  const std::int64_t rbp = rule.rbp_place.offset;
  const bool plain_rbp = !rule.rbp_is_saved || (rule.rbp_place.base == Term::Base::cfa && rbp % 8 == 0 && rbp < 0 &&
                                                rbp / 8 == static_cast<std::int16_t>(rbp / 8));
  return plain_cfa && plain_return && plain_rbp && !rule.rbp_is_lost && !rule.is_signal_frame;
}

PackedRule pack_row(const Row& row, Address address) {
  constexpr auto full = static_cast<PackedRule>(RuleKind::full);
  AtAddress environment(address.instruction_pointer());
  const RegisterRule& at_return = row.registers[register_return];
  if (at_return.place == Place::undefined) return pack_end(End::complete);
  SpecialRule rule;
  rule.is_signal_frame = row.is_signal_frame;
  if (row.cfa_expression.begin != nullptr) {
    if (!evaluate(row.cfa_expression, environment, nullptr, rule.cfa)) return full;
    if (rule.cfa.base == Term::Base::number) return full;
  } else {
    if (!environment.value_of(row.cfa_register, rule.cfa) || rule.cfa.base == Term::Base::number) return full;
    rule.cfa.offset = row.cfa_offset;
  }
  if (!find_place(at_return, environment, rule.return_place)) return full;
  const RegisterRule& rbp = row.registers[register_rbp];
  if (rbp.place == Place::undefined) {
    rule.rbp_is_lost = true;
  } else if (rbp.place != Place::same) {
    if (!find_place(rbp, environment, rule.rbp_place)) return full;
    rule.rbp_is_saved = true;
  }
  if (!keeps_rsp(row, rule, environment)) return full;
  if (!fits_a_word(rule)) return pack_special(rule);
  PackedRule packed =
      static_cast<PackedRule>(rule.cfa.base == Term::Base::rsp ? RuleKind::from_rsp : RuleKind::from_rbp);
  if (rule.rbp_is_saved) {
    packed |= 8 | PackedRule{static_cast<std::uint16_t>(rule.rbp_place.offset / 8)} << 16;
  }
  return packed | PackedRule{static_cast<std::uint32_t>(rule.cfa.offset)} << 32;
}

// Whether the bytes before a return address look like a call: E8 and four bytes, or FF with 2 in the middle of the next
// byte, two to seven bytes before. Code that was made at run time passes, data rarely does.
bool follows_a_call(std::uint64_t return_address) {
  constexpr unsigned most_bytes = 7;
  constexpr unsigned lengths[] = {2, 3, 4, 6, 7};
  if (return_address < page_bytes || !is_readable(return_address - 1)) return false;
  // A call at the start of the first page of code has less before it.
  const std::uint64_t in_page = (return_address - 1) % page_bytes + 1;
  const bool all = in_page >= most_bytes || is_readable(return_address - most_bytes);
  const std::uint64_t held = all ? most_bytes : in_page;
  const auto* end = reinterpret_cast<const std::uint8_t*>(return_address);
  if (held >= 5 && end[-5] == 0xe8) return true;
  for (const unsigned length : lengths) {
    if (length > held) break;
    const std::uint8_t* const call = end - length;
    if (call[0] == 0xff && (call[1] >> 3 & 7) == 2) return true;
  }
  return false;
}

// Code that lies in no object. .NET compiles every function that calls another with a frame pointer: rbp points at the
// caller's rbp, and the return address lies above it. Other compilers that work at run time do not promise that.
PackedRule rule_of_generated_code() {
  if (!is_loaded("libcoreclr.so")) return pack_end(End::no_rules);
  constexpr std::int32_t cfa = 16;
  constexpr std::int16_t rbp_words = -2;
  return static_cast<PackedRule>(RuleKind::from_rbp) | 8 | PackedRule{static_cast<std::uint16_t>(rbp_words)} << 16 |
         PackedRule{cfa} << 32;
}

}  // namespace

RuleCache rule_cache;

PackedRule make_rule(Address address, Workspace& space) {
  PackedRule rule = pack_end(End::no_rules);
  Object object;
  const bool is_address = address.value() < address_limit;
  if (is_address && find_object(address.value(), object)) {
    Row& row = space.row;
    if (find_row(object, address.value(), space, row)) {
      rule = pack_row(row, address);
    } else if (!address.is_exact() && !follows_a_call(address.instruction_pointer())) {
      rule = pack_end(End::complete) | entry_bit;
    }
  } else if (!is_address || (!address.is_exact() && !follows_a_call(address.instruction_pointer()))) {
    rule = pack_end(End::bad_return);
  } else {
    rule = rule_of_generated_code();
  }
  rule_cache.insert(address, rule);
  return rule;
}

void forget_rule_being_added() { special_lock = 0; }

const SpecialRule& special_rule(unsigned index) { return special_rules[index]; }

bool RuleCache::prepare() {
  if (__atomic_load_n(&sets_, __ATOMIC_ACQUIRE) != nullptr) return true;
  constexpr std::size_t bytes = sizeof(Set) << set_bits;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  Set* none = nullptr;
  if (!__atomic_compare_exchange_n(&sets_, &none, static_cast<Set*>(memory), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    munmap(memory, bytes);
  return true;
}

void RuleCache::insert(Address address, PackedRule rule) {
  if (address.value() >= address_limit) return;
  Set& set = sets_[index_of(address)];
  // A free place, else one that the address and the set's writes so far choose.
  Entry* chosen = nullptr;
  std::uint64_t writes = 0;
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): prepare() made the sets
  for (Entry& entry : set.entries) {
    const std::uint64_t key = __atomic_load_n(&entry.key, __ATOMIC_RELAXED);
    if ((key & key_mask) == address.bits) return;
    writes += key >> 48;
    if (chosen == nullptr && (key & key_mask) == 0) chosen = &entry;
  }
  if (chosen == nullptr) chosen = &set.entries[writes % 4];
  std::uint64_t old = __atomic_load_n(&chosen->key, __ATOMIC_RELAXED);
  const std::uint64_t count = (old >> 48) + 1;
  // Another thread that writes here wins; then this rule is made again at the next miss. Keys of writes under way have
  // no address.
  if ((old & key_mask) == being_written || !__atomic_compare_exchange_n(&chosen->key, &old, count << 48 | being_written,
                                                                        false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return;
  __atomic_store_n(&chosen->rule, rule, __ATOMIC_RELEASE);
  __atomic_store_n(&chosen->key, count << 48 | address.bits, __ATOMIC_RELEASE);
}

void RuleCache::clear() {
  if (__atomic_load_n(&sets_, __ATOMIC_ACQUIRE) == nullptr) return;
  for (std::size_t index = 0; index < std::size_t{1} << set_bits; ++index) {
    for (Entry& entry : sets_[index].entries) {
      std::uint64_t key = __atomic_load_n(&entry.key, __ATOMIC_RELAXED);
      const std::uint64_t address = key & key_mask;
      if (address == 0 || address == being_written) continue;
      __atomic_compare_exchange_n(&entry.key, &key, ((key >> 48) + 1) << 48, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
  }
}

}  // namespace blockyard::unwind
