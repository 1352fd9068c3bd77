// Why: where main ends by pthread_exit, POSIX ends the process with its last thread. The janitor is none of them: with
// it alone the process would stay for ever, deaf to signals.
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "behaviour.hpp"

int main() {
  std::thread([] {
    behaviour::ask_for_a_janitor();
    while (behaviour::thread_of_the_janitor() == 0) {
      std::free(std::memset(std::malloc(300'000), 1, 300'000));
      usleep(1'000);
    }
    usleep(10'000);  // main has ended by then
  }).detach();
  pthread_exit(nullptr);
}
