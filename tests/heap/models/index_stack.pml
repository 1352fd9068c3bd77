/* The stack of ready slabs and of parked heaps: library/src/heap/index_stack.hpp.
 *
 * Three indices, three threads that pop one or two and push them again. No index is ever held by two threads.
 *
 * Planted bug (-DPLANTED): the head carries no version, so a popper that slept may install a stale link (ABA).
 */
#define COUNT 3

byte head;
byte version;
byte next[COUNT + 1];
byte holder[COUNT + 1];   /* how many threads hold the index */

inline pop(index) {
  do
  :: atomic { seen = head; seen_version = version }
     if
     :: seen == 0 -> index = 0; break
     :: else ->
        link = next[seen];
        atomic {
          if
#ifdef PLANTED
          :: head == seen -> head = link; index = seen; holder[index]++; assert(holder[index] == 1); break
#else
          :: head == seen && version == seen_version ->
             head = link; version++; index = seen; holder[index]++; assert(holder[index] == 1); break
#endif
          :: else -> skip
          fi
        }
     fi
  od
}

inline push(index) {
  do
  :: atomic { seen = head; seen_version = version }
     next[index] = seen;
     atomic {
       if
#ifdef PLANTED
       :: head == seen -> holder[index]--; head = index; break
#else
       :: head == seen && version == seen_version -> holder[index]--; head = index; version++; break
#endif
       :: else -> skip
       fi
     }
  od
}

proctype one() {
  byte seen, seen_version, link, first;
  pop(first);
  if
  :: first != 0 -> push(first)
  :: else -> skip
  fi
}

proctype two() {
  byte seen, seen_version, link, first, second;
  pop(first);
  pop(second);
  if
  :: first != 0 -> push(first)
  :: else -> skip
  fi;
  if
  :: second != 0 -> push(second)
  :: else -> skip
  fi
}

init {
  atomic {
    next[3] = 2; next[2] = 1; next[1] = 0; head = 3;
    run one(); run two(); run one()
  }
}
