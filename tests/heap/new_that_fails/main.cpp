// Why: the preload brings no C++ library. It throws, and asks the new handler, by that of the program.
#include "new_that_fails/checks.hpp"

#include "behaviour.hpp"

int main() {
  const char* const broken = new_that_fails::broken();
  behaviour::require(broken == nullptr, broken);
  behaviour::require_sound_heap();
}
