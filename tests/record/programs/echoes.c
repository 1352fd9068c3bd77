// Sends its recorder a signal as soon as it runs and again as soon as it came back, to the end of its rounds: a
// recorder that can lose one is then between two waits most of the time. Ends with 9 when one did not come back within
// ten seconds.
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int count, char** arguments) {
  const long rounds = count > 1 ? strtol(arguments[1], NULL, 10) : 1;
  const struct timespec patience = {10, 0};
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGUSR1);
  sigprocmask(SIG_BLOCK, &awaited, NULL);
  for (long round = 0; round < rounds; ++round) {
    if (kill(getppid(), SIGUSR1) != 0) return 2;
    if (sigtimedwait(&awaited, NULL, &patience) != SIGUSR1) return 9;
  }
  return 0;
}
