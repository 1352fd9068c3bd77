// A forking server in small: the parent keeps a table of blocks alive; each child frees what it inherited, allocates of
// its own, answers over a pipe and exits. Also a vfork child, which shares its parent's memory, and a daemon's closing
// of files.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { children = 4, blocks = 50 };

static void* volatile table[blocks];

static int serve(int number, int answer_to) {
  if (number == 3) {
    for (int file = 3; file < 1024; ++file) {
      if (file != answer_to) close(file);
    }
  }
  for (int i = 0; i < blocks; ++i) free(table[i]);
  for (int i = 0; i < 100; ++i) {
    void* volatile block = malloc((size_t)(110000 + number));
    free(block);
  }
  return write(answer_to, "x", 1) == 1 ? 0 : 1;
}

static int run_true(void) {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

int main(void) {
  for (int i = 0; i < blocks; ++i) table[i] = malloc((size_t)(120000 + i));
  for (int number = 0; number < children; ++number) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) _exit(serve(number, ends[1]));
    char answer = 0;
    if (read(ends[0], &answer, 1) != 1 || answer != 'x') return 2;
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return 3;
    close(ends[0]);
    close(ends[1]);
  }
  const int status = run_true();
  for (int i = 0; i < blocks; ++i) free(table[i]);
  return status;
}
