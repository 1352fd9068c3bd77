// Why: a small program's wrong index disturbs nothing else and is found last. What is written a megabyte before or
// behind one of a program's first blocks, or before all of them, ends the program there and then; and so does
// what touches a block of 0 bytes.
#include <sys/wait.h>

#include <initializer_list>

#include "behaviour.hpp"

namespace {

volatile char* hidden(void* pointer) {
  __asm__ volatile("" : "+r"(pointer) : : "memory");
  return static_cast<volatile char*>(pointer);
}

template <class Body>
bool faults(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    behaviour::end_with_parent();
    body();
    _exit(0);
  }
  int status = 0;
  behaviour::require(waitpid(child, &status, 0) == child, "no child to wait for");
  return WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
}

}  // namespace

int main() {
  constexpr std::ptrdiff_t megabyte = 1 << 20;
  for (const std::size_t size : {std::size_t{8}, std::size_t{4096}, std::size_t{200'000}}) {
    volatile char* const block = hidden(std::malloc(size));
    behaviour::require(!faults([=] { block[size - 1] = 1; }), "a block's own byte can't be written");
    behaviour::require(faults([=] { block[-megabyte] = 1; }), "a write a megabyte before a first block went unseen");
    behaviour::require(faults([=] { block[megabyte + static_cast<std::ptrdiff_t>(size)] = 1; }),
                       "a write a megabyte behind a first block went unseen");
    std::free(const_cast<char*>(block));
  }
  volatile char* const empty = hidden(std::malloc(0));
  behaviour::require(faults([=] { static_cast<void>(empty[0]); }), "a block of 0 bytes was read");
  behaviour::require(faults([=] { empty[0] = 1; }), "a block of 0 bytes was written");
  std::free(const_cast<char*>(empty));
  behaviour::require_sound_heap();
}
