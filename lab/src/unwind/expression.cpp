// DWARF 5, 2.5.1.
#include "unwind/expression.hpp"

#include <optional>

#include "unwind/bytes.hpp"

namespace blockyard::unwind {
namespace {

class Evaluation {
 public:
  Evaluation(const Expression& expression, Environment& environment)
      : begin_(expression.begin), code_(expression.begin, expression.end), environment_(environment) {}

  bool run(const Term* initial, Term& result) {
    if (initial != nullptr) push(*initial);
    for (unsigned steps = 0; !code_.is_at_end(); ++steps) {
      if (steps == most_steps || !step() || broken_) return false;
    }
    if (code_.failed() || depth_ == 0) return false;
    result = stack_[depth_ - 1];
    return true;
  }

 private:
  static constexpr unsigned most_steps = 1000;  // an expression may loop
  static constexpr unsigned capacity = 16;

  void push(const Term& term) {
    if (depth_ == capacity) {
      broken_ = true;
    } else {
      stack_[depth_++] = term;
    }
  }
  void push_number(std::uint64_t number) {
    Term term;
    term.offset = static_cast<std::int64_t>(number);
    push(term);
  }
  Term pop() {
    if (depth_ == 0) {
      broken_ = true;
      return {};
    }
    return stack_[--depth_];
  }
  std::uint64_t pop_number() {
    const Term term = pop();
    broken_ |= term.base != Term::Base::number || term.is_loaded;
    return static_cast<std::uint64_t>(term.offset);
  }
  static bool is_number(const Term& term) { return term.base == Term::Base::number && !term.is_loaded; }
  static std::int64_t sum(std::int64_t left, std::int64_t right) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
  }
  static Term shifted(Term term, std::int64_t by) {
    std::int64_t& part = term.is_loaded ? term.after : term.offset;
    part = sum(part, by);
    return term;
  }

  bool push_register(std::uint64_t number, std::int64_t offset) {
    Term term;
    if (!environment_.value_of(number, term)) return false;
    push(shifted(term, offset));
    return true;
  }

  bool load() {
    const Term address = pop();
    Term value;
    if (broken_ || !environment_.load(address, value)) return false;
    push(value);
    return true;
  }

  bool pick(std::uint64_t from_top) {
    if (from_top >= depth_) return false;
    push(stack_[depth_ - 1 - from_top]);
    return true;
  }

  bool add() {
    const Term right = pop();
    const Term left = pop();
    if (is_number(right)) {
      push(shifted(left, right.offset));
    } else if (is_number(left)) {
      push(shifted(right, left.offset));
    } else {
      return false;
    }
    return true;
  }

  static std::optional<std::uint64_t> binary(std::uint8_t operation, std::uint64_t left, std::uint64_t right) {
    const auto signed_left = static_cast<std::int64_t>(left);
    const auto signed_right = static_cast<std::int64_t>(right);
    switch (operation) {
      case 0x1a:
        return left & right;
      case 0x1e:
        return left * right;
      case 0x21:
        return left | right;
      case 0x24:
        return right < 64 ? left << right : 0;
      case 0x25:
        return right < 64 ? left >> right : 0;
      case 0x26:
        return static_cast<std::uint64_t>(signed_left >> (right < 63 ? right : 63));
      case 0x27:
        return left ^ right;
      case 0x29:
        return signed_left == signed_right;
      case 0x2a:
        return signed_left >= signed_right;
      case 0x2b:
        return signed_left > signed_right;
      case 0x2c:
        return signed_left <= signed_right;
      case 0x2d:
        return signed_left < signed_right;
      case 0x2e:
        return signed_left != signed_right;
      default:
        return {};
    }
  }

  /// The number that stands in the code behind an operation that pushes one.
  std::optional<std::uint64_t> constant(std::uint8_t operation) {
    if (operation >= 0x30 && operation <= 0x4f) return operation - 0x30u;  // DW_OP_lit0 to 31
    switch (operation) {
      case 0x03:
      case 0x0e:
      case 0x0f:
        return code_.read<std::uint64_t>();
      case 0x08:
        return code_.read<std::uint8_t>();
      case 0x09:
        return static_cast<std::uint64_t>(std::int64_t{code_.read<std::int8_t>()});
      case 0x0a:
        return code_.read<std::uint16_t>();
      case 0x0b:
        return static_cast<std::uint64_t>(std::int64_t{code_.read<std::int16_t>()});
      case 0x0c:
        return code_.read<std::uint32_t>();
      case 0x0d:
        return static_cast<std::uint64_t>(std::int64_t{code_.read<std::int32_t>()});
      case 0x10:
        return code_.uleb();
      case 0x11:
        return static_cast<std::uint64_t>(code_.sleb());
      default:
        return {};
    }
  }

  bool step() {
    const auto operation = code_.read<std::uint8_t>();
    if (const auto number = constant(operation)) {
      push_number(*number);
      return true;
    }
    if (operation >= 0x70 && operation <= 0x8f) return push_register(operation - 0x70u, code_.sleb());  // DW_OP_breg
    switch (operation) {
      case 0x06:  // DW_OP_deref
        return load();
      case 0x94:  // DW_OP_deref_size
        return code_.read<std::uint8_t>() == 8 && load();
      case 0x12:  // DW_OP_dup
        return pick(0);
      case 0x13:  // DW_OP_drop
        pop();
        return true;
      case 0x14:  // DW_OP_over
        return pick(1);
      case 0x15:  // DW_OP_pick
        return pick(code_.read<std::uint8_t>());
      case 0x16: {  // DW_OP_swap
        const Term top = pop();
        const Term below = pop();
        push(top);
        push(below);
        return true;
      }
      case 0x1c: {  // DW_OP_minus
        const std::uint64_t right = pop_number();
        push(shifted(pop(), static_cast<std::int64_t>(0 - right)));
        return true;
      }
      case 0x1f:
        push_number(0 - pop_number());
        return true;
      case 0x20:
        push_number(~pop_number());
        return true;
      case 0x22:
        return add();
      case 0x23: {  // DW_OP_plus_uconst
        const auto by = static_cast<std::int64_t>(code_.uleb());
        push(shifted(pop(), by));
        return true;
      }
      case 0x28: {  // DW_OP_bra
        const auto by = code_.read<std::int16_t>();
        if (pop_number() != 0) code_.jump(by, begin_);
        return true;
      }
      case 0x2f:  // DW_OP_skip
        code_.jump(code_.read<std::int16_t>(), begin_);
        return true;
      case 0x92: {  // DW_OP_bregx
        const std::uint64_t number = code_.uleb();
        return push_register(number, code_.sleb());
      }
      case 0x96:  // DW_OP_nop
        return true;
      default:
        break;
    }
    const std::uint64_t right = pop_number();
    const auto result = binary(operation, pop_number(), right);
    if (result) push_number(*result);
    return result.has_value();
  }

  const std::uint8_t* begin_;
  Bytes code_;
  Environment& environment_;
  Term stack_[capacity];
  unsigned depth_ = 0;
  bool broken_ = false;
};

}  // namespace

bool evaluate(const Expression& expression, Environment& environment, const Term* initial, Term& result) {
  return Evaluation(expression, environment).run(initial, result);
}

}  // namespace blockyard::unwind
