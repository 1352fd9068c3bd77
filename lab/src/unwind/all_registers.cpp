// The slow walk, for the few frames whose rules ask for registers other than rsp and rbp: the loader's resolver, which
// keeps its frame in rbx, and functions that a signal interrupted where their frame is half made.
#include "unwind/objects.hpp"
#include "unwind/walker.hpp"

#if defined(__x86_64__)

asm(".text\n"
    ".hidden by_unwind_capture\n"
    ".globl by_unwind_capture\n"
    ".type by_unwind_capture, @function\n"
    "by_unwind_capture:\n"
    "  .cfi_startproc\n"
    "  endbr64\n"
    "  mov %rbx, 24(%rdi)\n"
    "  mov %rbp, 48(%rdi)\n"
    "  lea 8(%rsp), %rax\n"
    "  mov %rax, 56(%rdi)\n"
    "  mov %r12, 96(%rdi)\n"
    "  mov %r13, 104(%rdi)\n"
    "  mov %r14, 112(%rdi)\n"
    "  mov %r15, 120(%rdi)\n"
    "  mov (%rsp), %rax\n"
    "  mov %rax, 128(%rdi)\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size by_unwind_capture, .-by_unwind_capture\n");

namespace blockyard::unwind {
namespace {

// rbx, rbp, rsp, r12 to r15, and the return address.
constexpr std::uint32_t kept_by_calls = 1u << 3 | 1u << 6 | 1u << 7 | 0xfu << 12 | 1u << 16;

/// All registers of a frame, and how they become those of its caller.
class AllRegisters final : public Environment {
 public:
  AllRegisters(const Registers& values, StackMemory& memory) : now_(values), memory_(memory) {}

  std::uint64_t rsp() const { return now_.values[register_rsp]; }
  std::uint64_t return_address() const { return now_.values[register_return]; }

  bool value_of(std::uint64_t number, Term& value) override {
    if (number >= register_count || (known_ >> number & 1) == 0) return false;
    value = Term{};
    value.offset = static_cast<std::int64_t>(now_.values[number]);
    return true;
  }
  bool load(const Term& address, Term& value) override {
    std::uint64_t word = 0;
    if (address.base != Term::Base::number || address.is_loaded) return false;
    if (!memory_.load(static_cast<std::uint64_t>(address.offset), word)) return false;
    value = Term{};
    value.offset = static_cast<std::int64_t>(word);
    return true;
  }

  /// Moves on to the caller; `here` is this frame's instruction pointer. False when something that it needs is missing.
  bool step(const Row& row, std::uint64_t here) {
    now_.values[register_return] = here;
    known_ |= 1u << register_return;
    Term cfa;
    if (row.cfa_expression.begin != nullptr) {
      if (!evaluate(row.cfa_expression, *this, nullptr, cfa)) return false;
    } else {
      if (!value_of(row.cfa_register, cfa)) return false;
      cfa.offset += row.cfa_offset;
    }
    Registers next = now_;
    std::uint32_t known = 0;
    for (unsigned number = 0; number < register_count; ++number) {
      const RegisterRule& rule = row.registers[number];
      Term value;
      if (number == register_rsp && rule.place == Place::same) {
        value = cfa;
      } else if (!find(rule, number, cfa, value)) {
        continue;
      }
      next.values[number] = static_cast<std::uint64_t>(value.offset);
      known |= 1u << number;
    }
    now_ = next;
    known_ = known;
    constexpr std::uint32_t needed = 1u << register_rsp | 1u << register_return;
    return (known & needed) == needed;
  }

 private:
  bool find(const RegisterRule& rule, unsigned number, const Term& cfa, Term& value) {
    switch (rule.place) {
      case Place::same:
        return number != register_return && (kept_by_calls >> number & 1) != 0 && value_of(number, value);
      case Place::at_cfa:
        value = cfa;
        value.offset += rule.offset;
        return load(value, value);
      case Place::is_cfa:
        value = cfa;
        value.offset += rule.offset;
        return true;
      case Place::in_register:
        return value_of(static_cast<std::uint64_t>(rule.offset), value);
      case Place::at_expression:
        return evaluate(rule.expression, *this, &cfa, value) && load(value, value);
      case Place::is_expression:
        return evaluate(rule.expression, *this, &cfa, value);
      default:
        return false;
    }
  }

  Registers now_;
  std::uint32_t known_ = kept_by_calls;
  StackMemory& memory_;
};

}  // namespace

void Walker::follow_all_registers(const Start& start) {
  Registers captured;
  by_unwind_capture(&captured);
  StackMemory memory = stack_.memory_for(captured.values[register_rsp]);
  AllRegisters registers(captured, memory);
  Address address = Address::of_call(registers.return_address());
  steps_ = 0;
  why_ = End::unknown;
  // The first frames are our own, up to the one at which the walk is to start.
  bool is_ours = true;
  constexpr unsigned most_of_ours = 64;
  for (unsigned count = 0; steps_ < depth_; ++count) {
    if (is_ours && registers.rsp() == start.rsp && address == Address::of_call(start.return_address)) is_ours = false;
    if (is_ours && (registers.rsp() > start.rsp || count == most_of_ours)) return;
    PackedRule rule = rule_cache.find(address);
    if (rule == 0) rule = make_rule(address, space_);
    if (!is_ours && !(kind_of(rule) == RuleKind::end && end_of(rule) == End::bad_return)) {
      path_[steps_].address = address;
      ++steps_;
    }
    if (kind_of(rule) == RuleKind::end) {
      if (is_entry(rule) && steps_ > 0) path_[steps_ - 1].address = Address::exact(address.instruction_pointer());
      why_ = end_of(rule);
      return;
    }
    Object object;
    Row& row = space_.row;
    why_ = End::no_rules;
    if (!find_object(address.value(), object) || !find_row(object, address.value(), space_, row)) return;
    const std::uint64_t from = registers.rsp();
    why_ = End::unreadable;
    if (!registers.step(row, address.instruction_pointer())) return;
    why_ = End::outside_stack;
    if (!enter(registers.rsp(), from, row.is_signal_frame, memory)) return;
    why_ = End::complete;
    if (registers.return_address() == 0) return;
    address =
        row.is_signal_frame ? Address::exact(registers.return_address()) : Address::of_call(registers.return_address());
  }
  why_ = End::depth;
}

}  // namespace blockyard::unwind

#endif
