// What operator new does when there is no such block: shared by a C++ program and by a plug-in of a C program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>

namespace new_that_fails {

// Not known to the compiler, which would warn.
inline volatile std::size_t too_much = PTRDIFF_MAX;

/// Where blocks go, or the compiler would leave the calls out.
inline void* volatile got = nullptr;

struct Refusal {};

inline int asked = 0;
inline void give_up_the_second_time() {
  if (++asked == 2) {
    std::set_new_handler(nullptr);
  }
}
inline void refuse() { throw Refusal{}; }

template <class Exception, class Try>
bool throws(Try&& attempt) {
  try {
    attempt();
  } catch (const Exception&) {
    return std::uncaught_exceptions() == 0;
  }
  return false;
}

/// The sentence that does not hold; null: all do.
inline const char* broken() {
  constexpr std::align_val_t alignment{64};
  const auto plain = [] { got = ::operator new(too_much); };
  const auto array = [] { got = ::operator new[](too_much); };
  const auto aligned = [=] { got = ::operator new(too_much, alignment); };
  const auto aligned_array = [=] { got = ::operator new[](too_much, alignment); };
  const auto each_is_null = [=] {
    const void* const one = ::operator new(too_much, std::nothrow);
    const void* const many = ::operator new[](too_much, std::nothrow);
    const void* const aligned_one = ::operator new(too_much, alignment, std::nothrow);
    const void* const aligned_many = ::operator new[](too_much, alignment, std::nothrow);
    return one == nullptr && many == nullptr && aligned_one == nullptr && aligned_many == nullptr;
  };
  if (!throws<std::bad_alloc>(plain) || !throws<std::bad_alloc>(array) || !throws<std::bad_alloc>(aligned) ||
      !throws<std::bad_alloc>(aligned_array)) {
    return "operator new does not throw std::bad_alloc";
  }
  if (!each_is_null()) {
    return "nothrow new does not give null";
  }
  std::set_new_handler(give_up_the_second_time);
  if (!throws<std::bad_alloc>(plain) || asked != 2) {
    return "operator new does not ask the new handler as long as there is one";
  }
  std::set_new_handler(refuse);
  if (!throws<Refusal>(plain) || !throws<Refusal>(aligned) || !each_is_null()) {
    return "what the new handler throws does not come to whom it is for";
  }
  std::set_new_handler(nullptr);
  void* const block = ::operator new(100, std::nothrow);
  ::operator delete(block, std::nothrow);
  return block != nullptr ? nullptr : "nothrow new gives no block though there is memory";
}

}  // namespace new_that_fails
