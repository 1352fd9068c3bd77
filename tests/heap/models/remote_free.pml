/* Remote free and its adoption: library/src/base/remote_list.hpp.
 *
 * Two threads free blocks into two slabs of one owner, who adopts at any time. The model keeps of each slab the number
 * of blocks in its remote list (the order does not matter here) and checks what the protocol promises: a slab is
 * announced once for every stretch of remote frees, stands in at most one chain, and is not given back while an
 * announcement is on its way; and whoever adopts a list finds that its oldest block, the list's end, has been noted.
 *
 * Planted bug (-DPLANTED): the owner also adopts a slab that was not announced.
 */
#define SLABS 2
#define FREES 2

byte count[SLABS];        /* blocks in the remote list */
byte used[SLABS];         /* blocks that the owner counts as used */
bool announced[SLABS];    /* stands in the chain of pending slabs, or is about to */
bool in_chain[SLABS];
bool oldest_noted[SLABS]; /* RemoteFrees::oldest says the end of the list that stands there now */
bool given_back[SLABS];
byte freed;

proctype remote(byte slab) {
  byte left = FREES;
  bool first;
  do
  :: left > 0 ->
     atomic {              /* the compare-and-exchange of RemoteList::push */
       assert(!given_back[slab]);
       first = (count[slab] == 0);
       count[slab]++;
       if
       :: first -> assert(!announced[slab]); announced[slab] = true
       :: else -> skip
       fi
     }
     if
     :: first ->
        atomic { assert(!oldest_noted[slab]); oldest_noted[slab] = true }
        atomic {           /* PendingStack::push */
          assert(!given_back[slab]);
          assert(!in_chain[slab]);
          in_chain[slab] = true
        }
     :: else -> skip
     fi;
     left--;
     freed++
  :: left == 0 -> break
  od
}

inline adopt(slab) {
  atomic { assert(oldest_noted[slab]); oldest_noted[slab] = false }
  atomic {                 /* RemoteList::adopt, one exchange */
    used[slab] = used[slab] - count[slab];
    count[slab] = 0;
    announced[slab] = false
  }
  if
  :: used[slab] == 0 -> given_back[slab] = true
  :: else -> skip
  fi
}

proctype owner() {
  byte slab = 0;
  do
  :: atomic { in_chain[slab] -> in_chain[slab] = false }
     adopt(slab)
#ifdef PLANTED
  :: !given_back[slab] && count[slab] > 0 -> adopt(slab)
#endif
  :: slab = 1 - slab
  :: used[0] == 0 && used[1] == 0 -> break
  od;
  assert(count[0] == 0 && count[1] == 0)
}

init {
  atomic {
    used[0] = 2 * FREES; used[1] = FREES;
    run remote(0); run remote(0); run remote(1); run owner()
  }
}
