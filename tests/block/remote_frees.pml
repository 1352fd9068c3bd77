/* Spin model of library/src/block/remote_frees.hpp: two threads free blocks of one slab, its owner ends, an adopter
 * takes the slab over.
 *
 * The slab's word is (count, notice). The model knows of the list only the number of blocks, since compare-and-swap
 * makes each step on the word one step. Every step on shared memory is atomic here; remote_frees_test.cpp models store
 * buffers.
 *
 * -DBUG_ADOPT  the adopter takes an announced slab    -DBUG_TAKE  the list is taken by a load and a store
 * -DBUG_LOST   a free that finds the slab armed does not announce it */
#define FREERS 2
#define BLOCKS 2 /* each */
#define WAKE 2
mtype = { idle, armed, announced };

byte count = 0;         /* blocks on the list */
mtype notice = armed;   /* the owner left a full slab behind */
byte pool = 0;          /* whose slab it is */
bool inbox[2];          /* whether the slab is in that pool's inbox */
byte found = 0;         /* blocks that owners have collected */
byte ended = 0;

inline push() {
  bool announce;
  atomic {
    announce = false;
    count++;
    if
    :: notice == armed && count >= WAKE ->
#ifndef BUG_LOST
       notice = announced; announce = true
#else
       skip
#endif
    :: else -> skip
    fi
  }
  if
  :: announce ->
     byte to = pool;    /* read after the step to announced */
     atomic { assert(!inbox[0] && !inbox[1]); inbox[to] = true }
  :: else -> skip
  fi
}

inline take() {
#ifdef BUG_TAKE
  byte seen = count;
  count = 0;
  found = found + seen
#else
  atomic { found = found + count; count = 0 }
#endif
}

inline drain(which) {
  if
  :: atomic { inbox[which] -> inbox[which] = false }
     atomic { assert(notice == announced); found = found + count; count = 0; notice = idle }
  :: !inbox[which]
  fi
}

/* Arms unless as many blocks as wake have come: those are taken first. */
inline arm_or_take() {
  bool again = true;
  do
  :: again ->
     if
     :: atomic { notice == idle && count < WAKE -> notice = armed; again = false }
     :: atomic { notice != idle -> again = false }
     :: atomic { notice == idle && count >= WAKE -> skip }
        take()
     fi
  :: else -> break
  od
}

proctype freer() {
  byte n = 0;
  do
  :: n < BLOCKS -> push(); n++
  :: else -> break
  od;
  ended++
}

proctype adopter() {
  drain(0);
  /* disarm */
  atomic { if :: notice == armed -> notice = idle :: else -> skip fi }
  if
#ifndef BUG_ADOPT
  :: notice == announced -> goto stays  /* its entry lies in pool 0's inbox */
#endif
  :: else -> skip
  fi;
  pool = 1;
  arm_or_take();
stays:
  ended++
}

init {
  atomic { run freer(); run freer(); run adopter() }
  ended == FREERS + 1;
  /* Whoever owns the slab looks once more. */
  drain(pool);
  assert(notice != announced && !inbox[0] && !inbox[1]);
  assert(notice == idle || count < WAKE);
  take();
  assert(found == FREERS * BLOCKS)
}
