/// C interface of libblockyard-samples.so, for ctypes. No function reads a file, writes one or prints. Each may be
/// called from any thread, but an object from one thread at a time. Rows are only read, and must stay mapped during a
/// call.
#ifndef BLOCKYARD_SAMPLES_H
#define BLOCKYARD_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BY_SAMPLES_ABI 7u
#define BY_SAMPLES_API __attribute__((visibility("default")))

/// One repeat of one allocator; `rows` as in samples.npy, any alignment.
typedef struct by_samples_run {
  const void* rows;
  uint32_t floor_call;   ///< ticks to subtract from every call (0 for gross figures)
  uint32_t floor_touch;  ///< ticks to subtract from every touch
  double scale;          ///< factor from this run's ticks to the group's
} by_samples_run;

/// What is wrong with the rows: 0 nothing, 1 unknown kind, 2 event numbers do not rise, 3 not the event that the first
/// run has in this row, 4 out of memory.
typedef struct by_samples_fault {
  uint32_t what;
  uint32_t run;
  uint64_t row;
} by_samples_fault;

/// The frame of a density picture. Latency is the call and the touch together (a reallocate counts as malloc). What
/// lies below `low_ticks` (0 included) falls into the lowest row; what lies outside the times is left out.
typedef struct by_samples_frame {
  uint32_t width;          ///< cells across
  uint32_t height;         ///< cells up
  double begin_ns;         ///< time at the left edge
  double end_ns;           ///< time at the right edge
  double low_ticks;        ///< latency at the lower edge, above 0
  double high_ticks;       ///< latency at the upper edge
  uint32_t step_ticks;     ///< the clock advances by so many ticks at a time: latencies are known to one step
  uint32_t marks_from[6];  ///< by plane: latencies of at least so many ticks are returned one by one. The planes are
                           ///< malloc and free as-run, malloc and free inherent, malloc and free attributed.
} by_samples_frame;

/// One event worth a mark of its own.
typedef struct by_samples_mark {
  uint64_t time_ns;
  uint64_t size;
  uint32_t ticks;
  uint32_t event;
  uint32_t run;    ///< the repeat's place among the runs; 0 for inherent
  uint32_t cause;  ///< as in its row; 0 for inherent
} by_samples_mark;

/// One plane: width * height cells, column by column, and its marks in order of event.
typedef struct by_samples_plane {
  const uint32_t* counts;
  const uint64_t* sizes;  ///< the sum over each cell's events of their size steps (four per octave)
  const by_samples_mark* marks;
  size_t mark_count;
} by_samples_plane;

/// One of the slowest events, with its slowest repeat.
typedef struct by_samples_slow {
  uint64_t row;    ///< counted from the first feed
  uint32_t ticks;  ///< call and touch
  uint32_t run;
} by_samples_slow;

/// One way to cut a journal into frames: frame i has the events of `thread` from edges[i] on and below edges[i + 1].
/// The sums are ticks of call and touch. They are added to what stands there: edge_count - 1 values, where it says "by
/// run" for each run, one run after the other.
typedef struct by_samples_cut {
  const uint32_t* edges;  ///< event numbers, rising
  size_t edge_count;
  uint32_t thread;       ///< UINT32_MAX: of all threads
  uint32_t* events;      ///< by frame
  uint64_t* as_run;      ///< by run and frame
  uint64_t* attributed;  ///< by run and frame
  uint64_t* inherent;    ///< by frame: of each event the minimum over all runs
} by_samples_cut;

/// How time and latency are cut into histograms. Latency is the call and the touch together; a reallocate counts as
/// malloc.
typedef struct by_samples_tile_frame {
  uint32_t columns;     ///< stretches of time, of equal length
  uint32_t bins;        ///< of latency: 0 for less than a tick, then `per_octave` per octave from 1 ns on
  uint32_t per_octave;  ///< a bin is 2^(1/per_octave) wide
  double begin_ns;      ///< what started before falls into the first column
  double end_ns;        ///< what started later falls into the last
  double ticks_per_ns;  ///< of the group's ticks
} by_samples_tile_frame;

/// Which group each row belongs to (UINT32_MAX: none), and which frame, for sums in which the time of each frame counts
/// by a weight. `frame` may be NULL: then nothing is weighted, and the rest is ignored.
typedef struct by_samples_grouping {
  const uint32_t* group;  ///< by row
  size_t group_count;
  const uint32_t* frame;  ///< by row; UINT32_MAX: none
  size_t frame_count;
  const double* as_run;      ///< weights, run_count * frame_count
  const double* inherent;    ///< frame_count
  const double* attributed;  ///< run_count * frame_count
} by_samples_grouping;

/// The call stacks of a journal's events, and how time is cut into columns.
typedef struct by_samples_stack_source {
  const uint32_t* node_of_event;
  uint64_t event_count;
  uint32_t node_count;   ///< what is not below it has no stack
  const uint32_t* pair;  ///< by event: of an allocation the event that ends its block
  uint64_t pair_count;
  double columns_per_ns;
  uint32_t columns;  ///< stretches of time, fewer than UINT16_MAX; what started later falls into the last
} by_samples_stack_source;

/// By row.
typedef struct by_samples_stack_rows {
  uint32_t* node;    ///< node_count where the event has no stack
  uint16_t* column;  ///< in which it started
  uint16_t* died;    ///< in which the block that it gave ends; UINT16_MAX where no row says so
} by_samples_stack_rows;

/// Cells by column, then by place.
typedef struct by_samples_cell_columns {
  uint32_t* occupied;  ///< by column: how many cells; added to what stands there
  uint32_t* place;     ///< by cell
  uint32_t* calls;     ///< by cell; added to what stands there
  uint64_t* bytes;     ///< by cell; added to what stands there
} by_samples_cell_columns;

/// Cells of allocations, of frees by the stack that freed, and of blocks' ends by the stack that allocated.
enum { by_samples_cell_kinds = 3 };

typedef struct by_samples_digest by_samples_digest;
typedef struct by_samples_bins by_samples_bins;
typedef struct by_samples_cells by_samples_cells;

BY_SAMPLES_API uint32_t by_samples_abi(void);

/// Distributions of latencies; NULL when out of memory. `threads` is limited to 1 or 2; so many of the `slowest` events
/// are kept. Those of `phases`, 1 or more, are kept apart.
BY_SAMPLES_API by_samples_digest* by_samples_digest_new(uint32_t threads, uint32_t slowest, uint32_t phases);
BY_SAMPLES_API void by_samples_digest_delete(by_samples_digest* digest);
/// Adds `rows` rows of each run, all of which happened in `phase`; row i is the same event in each. For files larger
/// than memory, call it again with the rows that follow, of the same runs. After a fault the digest is of no use.
/// O(rows * runs).
BY_SAMPLES_API by_samples_fault by_samples_digest_feed(by_samples_digest* digest, const by_samples_run* runs,
                                                       uint32_t run_count, uint64_t rows, uint32_t phase);
/// Copies up to `capacity` distinct latencies (rising) and their counts; returns how many there are, or SIZE_MAX when
/// out of memory. With capacity 0 it only counts them. view: 0 as-run, 1 inherent, 2 attributed. metric_bits, taken
/// together: bit 0 malloc call, 1 malloc touch, 2 malloc both, 3 to 5 the same of realloc, 6 free. size_class_bits:
/// bits 0 to 4. run: a run's place, or UINT32_MAX for all of them together; inherent ignores it. phase: the same. What
/// was never fed gives 0.
BY_SAMPLES_API size_t by_samples_digest_copy(const by_samples_digest* digest, uint32_t view, uint32_t metric_bits,
                                             uint32_t size_class_bits, uint32_t run, uint32_t phase, uint32_t* ticks,
                                             uint64_t* counts, size_t capacity);
/// The same for the events of all repeats that have exactly this value in their column of causes. operation: 0 malloc,
/// 1 realloc (call and touch both), 2 free.
BY_SAMPLES_API size_t by_samples_digest_cause(const by_samples_digest* digest, uint32_t operation, uint32_t cause,
                                              uint32_t* ticks, uint64_t* counts, size_t capacity);
/// Copies up to `capacity` of the slowest events, each once, the slowest first; returns how many are kept.
BY_SAMPLES_API size_t by_samples_digest_slowest(const by_samples_digest* digest, by_samples_slow* events,
                                                size_t capacity);

/// Sums of the latencies in frames. A digest must have found no fault in the rows. Returns 0, or 1 when out of memory.
/// O(rows * runs * cuts).
BY_SAMPLES_API int by_samples_frame_times(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                                          const by_samples_cut* cuts, uint32_t cut_count, uint32_t threads);

/// Bins for the six density planes of one allocator; NULL when out of memory. O(rows * runs).
BY_SAMPLES_API by_samples_bins* by_samples_bin(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                                               const by_samples_frame* frame, uint32_t threads);
BY_SAMPLES_API void by_samples_bins_delete(by_samples_bins* bins);
/// Owned by `bins`.
BY_SAMPLES_API by_samples_plane by_samples_bins_plane(const by_samples_bins* bins, uint32_t plane);

/// Latency histograms of short stretches of time, without the `single` rows (rising). A digest must have found no fault
/// in the rows. Adds to `counts`, which has columns * bins cells for each plane, with cell = column * bins + bin. There
/// are four pairs of planes, of malloc and of free: as-run; the part of it that the machine interrupted, which
/// attributed leaves out; inherent; and what attributed has instead, of events that were interrupted in every run. An
/// event's time is that of its first run. Writes the latency of each single row in every run, in ticks, into
/// `latencies`. Returns 0, or 1 when out of memory. O(rows * runs).
BY_SAMPLES_API int by_samples_tile(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                                   const by_samples_tile_frame* frame, const uint64_t* single, size_t single_count,
                                   uint32_t threads, uint32_t* counts, uint32_t* latencies);

/// Allocator time by group, in ticks: all runs together. Adds to `sums`, and where frames are given with their weights
/// to `weighted`: for each group three, which are as-run, inherent and attributed. A digest must have found no fault in
/// the rows. Returns 0, or 1 when out of memory. O(rows * runs).
BY_SAMPLES_API int by_samples_group_times(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                                          const by_samples_grouping* grouping, double* sums, double* weighted);

/// Joins rows of one run, whose event numbers must rise, with call stacks. Adds to `sums`, which has four times
/// node_count + 1: by node the allocations, their bytes, the frees, and the bytes of blocks whose end a row says.
/// Returns 0, or 1 when out of memory. O(rows).
BY_SAMPLES_API int by_samples_stack_events(const void* rows, uint64_t count, const by_samples_stack_source* source,
                                           const by_samples_stack_rows* found, double* sums);

/// The cells of rows whose nodes have a place each, below `places`; NULL when out of memory. What is given must stay
/// there. O(rows).
BY_SAMPLES_API by_samples_cells* by_samples_cells_new(const void* rows, uint64_t count,
                                                      const by_samples_stack_rows* stacks,
                                                      const uint32_t* place_of_node, uint32_t places, uint32_t columns);
BY_SAMPLES_API void by_samples_cells_delete(by_samples_cells* cells);
/// How many there are of a kind.
BY_SAMPLES_API uint64_t by_samples_cells_count(const by_samples_cells* cells, uint32_t kind);
/// Makes every two neighbouring columns one. There must be an even number of them.
BY_SAMPLES_API void by_samples_cells_join(by_samples_cells* cells);
/// Fills one of `found` for each kind, and by row the number of its cell: those of frees come after all of allocations.
/// Returns 0, or 1 when out of memory. O(rows).
BY_SAMPLES_API int by_samples_cells_copy(const by_samples_cells* cells, const by_samples_cell_columns* found,
                                         uint32_t* group);

#ifdef __cplusplus
}
#endif
#endif
