/* The depot's ring of magazines: library/src/heap/transfer/depot.hpp.
 *
 * Two givers and two takers over two places, so that each place comes round again and again. A place has one owner at a
 * time; magazines come out once each, the oldest first; none stays behind and no place is lost. At any moment the
 * process may fork: in the child nobody goes on who was in the middle of a place, and what mend() leaves is whole, with
 * every magazine that was full and nobody's. What one core sees late of another's writes is not modelled here: the
 * interleaving tests (tests/heap/api/protocols_test.cpp) leave out the release.
 *
 * Planted bugs (-DPLANTED=...):
 *   1  a taker looks whether a place is full and does not claim it
 *   2  a place is published before it is filled
 *   3  a turn says full or to be filled, but not which time round
 *   4  mend() leaves the turn of a place whose owner is gone as it was
 *   5  mend() keeps full places where they are, behind one that was never filled
 */
#ifndef PLANTED
#define PLANTED 0
#endif

#define PLACES 2
#define GIVES_1 3          /* how often each thread tries */
#define GIVES_2 2
#define TAKES_1 3
#define TAKES_2 2

#if PLANTED == 3
#define TURN(at, is_full) (is_full)
#define NEXT(turn) (1 - (turn))
#define NOT_YET(turn, wanted) ((turn) != (wanted))
#else
#define TURN(at, is_full) (((at) / PLACES) * 2 + (is_full))
#define NEXT(turn) ((turn) + 1)
#define NOT_YET(turn, wanted) ((turn) < (wanted))
#endif

byte given;                /* magazines ever put in, ever taken out; 64 bits in the heap, and few here */
byte taken;
byte turn[PLACES];
byte contents[PLACES];     /* the number of the magazine, from 1; 0: none */
bool owned[PLACES];        /* between the exchange that claims a place and the turn that lets go of it */

inline claim(place) {
  assert(!owned[place]);
  owned[place] = true
}

/* advance(): what becomes of `at`, for the counter `end` and places that are full or not */
inline look(end, is_full) {
  at = end;
  do
  :: atomic {
       seen = turn[at % PLACES];
       if
       :: NOT_YET(seen, TURN(at, is_full)) -> break
       :: else -> skip
       fi
     }
     if
     :: seen > TURN(at, is_full) ->
        atomic {
          before = at;
          at = end;
          assert(at != before);  /* else an owner went on behind mend(), and here none does */
          before = 0
        }
     :: else ->
        atomic {
          if
#if PLANTED == 1
          :: is_full == 1 -> claimed = true; end = at + 1; break
#endif
          :: end == at -> claimed = true; end = at + 1; claim(at % PLACES); break
          :: else -> at = end
          fi
        }
     fi
  od
}

inline fill(what) {
  atomic { assert(contents[at % PLACES] == 0); contents[at % PLACES] = what }
}

inline clear() {
  atomic { what = contents[at % PLACES]; contents[at % PLACES] = 0; assert(what != 0) }
}

inline let_go() {
  atomic { turn[at % PLACES] = NEXT(seen); owned[at % PLACES] = false }
}

/* Fewer states: what a thread no longer needs is the same everywhere. */
inline forget() {
  at = 0; seen = 0; what = 0; claimed = false; left--
}

/* A magazine's number is that of its place in the queue: whoever takes the third must find the third. */
proctype giver(byte left) {
  byte at, before, seen, what;
  bool claimed;
  do
  :: left > 0 ->
     look(given, 0);
     if
     :: claimed ->
#if PLANTED == 2
        let_go(); fill(at + 1)
#else
        fill(at + 1); let_go()
#endif
     :: else -> skip
     fi;
     atomic { forget() }
  :: left == 0 -> break
  od
}

proctype taker(byte left) {
  byte at, before, seen, what;
  bool claimed;
  do
  :: left > 0 ->
     look(taken, 1);
     if
     :: claimed -> atomic { clear(); assert(what == at + 1) } let_go()
     :: else -> skip
     fi;
     atomic { forget() }
  :: left == 0 -> break
  od
}

/* From here on one thread is alone: its steps are one. */

inline give_alone(number) {
  claimed = (turn[given % PLACES] == TURN(given, 0));
  if
  :: claimed -> contents[given % PLACES] = number; turn[given % PLACES] = NEXT(turn[given % PLACES]); given++
  :: else -> skip
  fi
}

inline take_alone() {
  if
  :: turn[taken % PLACES] == TURN(taken, 1) ->
     what = contents[taken % PLACES]; turn[taken % PLACES] = NEXT(turn[taken % PLACES]); taken++
  :: else -> what = 0
  fi
}

/* What was full comes out in its order, then each place serves twice. */
inline check_whole() {
  last = 0; came = 0; round = 0;
  do
  :: take_alone();
     if
     :: what == 0 -> break
     :: else -> assert(what > last); last = what; came++
     fi
  od;
  assert(came == full_places);
  do
  :: round < 2 ->
     each = 0;
     do
     :: each < PLACES -> give_alone(each + 1); assert(claimed); each++
     :: else -> break
     od;
     give_alone(99);
     assert(!claimed);
     each = 0;
     do
     :: each < PLACES -> take_alone(); assert(what == each + 1); each++
     :: else -> break
     od;
     take_alone();
     assert(what == 0);
     round++
  :: else -> break
  od
}

inline count_full() {
  full_places = 0;
  at = taken;
  do
  :: at < given ->
     if
     :: turn[at % PLACES] == TURN(at, 1) -> full_places++
     :: else -> skip
     fi;
     at++
  :: else -> break
  od
}

inline mend() {
  kept = taken;
  at = taken;
  do
  :: at < given ->
     if
     :: turn[at % PLACES] == TURN(at, 1) ->
#if PLANTED == 5
        skip;
#else
        contents[kept % PLACES] = contents[at % PLACES];
#endif
        kept++
     :: else -> skip
     fi;
     at++
  :: else -> break
  od;
  at = taken;
  do
  :: at < taken + PLACES ->
     if
     :: at < kept -> turn[at % PLACES] = TURN(at, 1)
     :: else ->
#if PLANTED == 4
        skip
#else
        turn[at % PLACES] = TURN(at, 0)
#endif
     fi;
     at++
  :: else -> break
  od;
  given = kept
}

/* The child has a copy of everything: here it works on the parent's, and what it changed is put back. */
inline check_child() {
  given_before = given; taken_before = taken;
  turn_before[0] = turn[0]; turn_before[1] = turn[1];
  contents_before[0] = contents[0]; contents_before[1] = contents[1];
  count_full();
  mend();
  check_whole();
  given = given_before; taken = taken_before;
  turn[0] = turn_before[0]; turn[1] = turn_before[1];
  contents[0] = contents_before[0]; contents[1] = contents_before[1];
  given_before = 0; taken_before = 0;
  turn_before[0] = 0; turn_before[1] = 0;
  contents_before[0] = 0; contents_before[1] = 0;
  at = 0; what = 0; last = 0; came = 0; round = 0; each = 0; kept = 0; full_places = 0; claimed = false
}

init {
  byte at, what, last, came, round, each, kept, full_places, given_before, taken_before;
  byte turn_before[PLACES], contents_before[PLACES];
  bool claimed;
  atomic { run giver(GIVES_1); run giver(GIVES_2); run taker(TAKES_1); run taker(TAKES_2) }
  do
  :: (_nr_pr == 1) -> break
  :: d_step { _nr_pr > 1 -> check_child() }
  od;
  skip;  /* a d_step cannot be jumped into */
  d_step {
    count_full();
    assert(full_places == given - taken);  /* with nobody in between, what was given and not taken is full */
    check_whole()
  }
}
