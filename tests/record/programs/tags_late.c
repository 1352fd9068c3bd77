// Tags that were pushed before the recording began are those of its first events. Linked with the recorder, whose
// journal the program opens by itself.
#include <stdlib.h>

#include "blockyard/journal.h"
#include "blockyard/tag.h"

int main(int count, char** arguments) {
  if (count < 2) return 1;
  static char memory[64];
  by_tag_push("early");
  by_tag_push("popped");
  by_tag_pop();
  by_tag_push("still there");
  const by_tag_path path = by_tag_current();
  if (by_journal_open(arguments[1]) != 0) return 2;
  by_journal_alloc(memory, 10, 0);
  by_tag_pop();
  by_journal_alloc(memory + 16, 11, 0);
  by_tag_pop();
  by_journal_alloc(memory + 32, 12, 0);
  by_tag_enter(path);
  by_journal_alloc(memory + 48, 13, 0);
  by_journal_free(memory);
  if (by_journal_close() != 0) return 3;
  by_tag_pop();
  // A second journal of the process has them, too.
  by_tag_push("second");
  if (by_journal_open(arguments[2]) != 0) return 4;
  by_journal_alloc(memory, 14, 0);
  by_tag_enter(path);
  by_journal_alloc(memory + 16, 15, 0);
  return by_journal_close() == 0 ? 0 : 5;
}
