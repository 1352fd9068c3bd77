// Opens and closes the recording's window by itself, or lets a signal do it.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blockyard/journal.h"

static void step(void) {
  char line[16];
  puts("step");
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) exit(3);
}

int main(int count, char** arguments) {
  void* volatile early = malloc(160001);
  void* volatile gone = aligned_alloc(256, 160256);
  void* volatile kept = aligned_alloc(4096, 163840);
  free(gone);
  if (count > 1 && strcmp(arguments[1], "step") == 0) {
    step();
    void* volatile inside = malloc(160002);
    free(early);
    step();
    free(inside);
    return 0;
  }
  by_journal_start();
  void* volatile inside = malloc(160002);
  free(early);
  by_journal_stop();
  void* volatile between = malloc(160003);
  free(inside);
  by_journal_start();
  free(between);
  free(kept);
  by_journal_stop();
  return 0;
}
