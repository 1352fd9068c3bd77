// Finds the real allocation functions at the first call of any of them.
#include "record/linux/real.hpp"

#include <cstdlib>

#include <unistd.h>

#include "record/linux/symbols.hpp"

namespace blockyard::record {
namespace {

[[noreturn]] void give_up() {
  static constexpr char sentence[] =
      "blockyard: no malloc was found behind the recorder; is libc linked dynamically?\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, sentence, sizeof sentence - 1);
  abort();
}

void* find_or_give_up(const char* name) {
  void* found = find_next(name).address;
  if (found == nullptr) give_up();
  return found;
}

void resolve() {
#define BLOCKYARD_FIND(name, result, parameters) \
  real.name = reinterpret_cast<result(*) parameters>(find_or_give_up(#name));
  BLOCKYARD_REAL_FUNCTIONS(BLOCKYARD_FIND)
#undef BLOCKYARD_FIND
}

// Stands in for a member until resolve() has run.
template <auto member, typename Function>
struct Stub;

template <auto member, typename Result, typename... Parameters>
struct Stub<member, Result (*)(Parameters...)> {
  static Result call(Parameters... parameters) {
    resolve();
    return (real.*member)(parameters...);
  }
};

}  // namespace

void find_real_functions() { resolve(); }

RealFunctions real = {
#define BLOCKYARD_STUB(name, result, parameters) &Stub<&RealFunctions::name, result(*) parameters>::call,
    BLOCKYARD_REAL_FUNCTIONS(BLOCKYARD_STUB)
#undef BLOCKYARD_STUB
};

}  // namespace blockyard::record
