/* Parking a heap at a thread's end and handing it on: library/src/heap/front/heap_table.cpp over index_stack.hpp.
 *
 * Threads come and go over two heaps while another frees blocks that live in them, and the janitor sweeps parked heaps.
 * A heap has one user at a time, and a remote free is adopted by whoever uses the heap then: none is lost.
 *
 * Planted bug (-DPLANTED): a thread's end parks its heap before it has stopped using it.
 */
#define HEAPS 2

bool parked[HEAPS];
byte users[HEAPS];
byte waiting[HEAPS];      /* remote frees not yet adopted */
byte adopted;
byte freed;

inline use(heap) {
  users[heap]++;
  assert(users[heap] == 1);
  atomic { adopted = adopted + waiting[heap]; waiting[heap] = 0 }
}

proctype visitor() {      /* a thread's life, or one sweep of the janitor */
  byte heap;
  if
  :: atomic { parked[0] -> parked[0] = false; heap = 0 }
  :: atomic { parked[1] -> parked[1] = false; heap = 1 }
  fi;
  use(heap);
#ifdef PLANTED
  parked[heap] = true;
  users[heap]--
#else
  users[heap]--;
  parked[heap] = true
#endif
}

proctype freer() {
  atomic { waiting[0]++; freed++ }
  atomic { waiting[1]++; freed++ }
  atomic { waiting[0]++; freed++ }
}

init {
  atomic {
    parked[0] = true; parked[1] = true;
    run visitor(); run visitor(); run visitor(); run freer()
  }
  (_nr_pr == 1);
  use(0); users[0]--;
  use(1); users[1]--;
  assert(adopted == freed)
}
