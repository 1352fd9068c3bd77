/// C interface of libblockyard-samples.so, for ctypes. No function here reads a file, writes one or prints; each may be
/// called from any thread, an object from one thread at a time. Rows are only read, and must stay mapped during a call.
#ifndef BLOCKYARD_SAMPLES_H
#define BLOCKYARD_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BY_SAMPLES_ABI 1u
#define BY_SAMPLES_API __attribute__((visibility("default")))

/// One repeat of one allocator; `rows` as in samples.npy, any alignment.
typedef struct by_samples_run {
  const void* rows;
  uint32_t floor_call;   ///< ticks taken off every call (0 for gross figures)
  uint32_t floor_touch;  ///< ticks taken off every touch
  double scale;          ///< this run's ticks into the group's
} by_samples_run;

/// What is wrong with the rows: 0 nothing, 1 unknown kind, 2 event numbers do not rise, 3 not the event that the first
/// run has in this row, 4 out of memory.
typedef struct by_samples_fault {
  uint32_t what;
  uint32_t run;
  uint64_t row;
} by_samples_fault;

typedef struct by_samples_frame {
  uint32_t width;
  uint32_t height;
  double begin_ns;
  double end_ns;
  double low_ticks;
  double high_ticks;
  uint32_t step_ticks;     ///< the clock advances by so many ticks at a time
  uint32_t marks_from[4];  ///< by plane: malloc as-run, free as-run, malloc inherent, free inherent
} by_samples_frame;

typedef struct by_samples_mark {
  uint64_t time_ns;
  uint64_t size;
  uint32_t ticks;
  uint32_t event;
} by_samples_mark;

typedef struct by_samples_digest by_samples_digest;
typedef struct by_samples_bins by_samples_bins;

BY_SAMPLES_API uint32_t by_samples_abi(void);

/// Distributions of latencies; NULL when out of memory. `threads` is held to 1 or 2.
BY_SAMPLES_API by_samples_digest* by_samples_digest_new(uint32_t threads);
BY_SAMPLES_API void by_samples_digest_delete(by_samples_digest* digest);
/// Adds `rows` rows of each run; call again with the rows that follow. O(rows * runs).
BY_SAMPLES_API by_samples_fault by_samples_digest_feed(by_samples_digest* digest, const by_samples_run* runs,
                                                       uint32_t run_count, uint64_t rows);
/// Copies up to `capacity` distinct latencies (rising) and their counts; returns how many there are, or SIZE_MAX when
/// out of memory. With capacity 0 only counts them. view: 0 as-run, 1 inherent. metric: 0 malloc call, 1 malloc touch,
/// 2 malloc both, 3..5 the same of realloc, 6 free. size_class: 0..4.
BY_SAMPLES_API size_t by_samples_digest_copy(const by_samples_digest* digest, uint32_t view, uint32_t metric,
                                             uint32_t size_class, uint32_t* ticks, uint64_t* counts, size_t capacity);

/// Bins for the four density pictures of one allocator; NULL when out of memory. O(rows * runs).
BY_SAMPLES_API by_samples_bins* by_samples_bin(const by_samples_run* runs, uint32_t run_count, uint64_t rows,
                                               const by_samples_frame* frame, uint32_t threads);
BY_SAMPLES_API void by_samples_bins_delete(by_samples_bins* bins);
/// width * height cells, column by column; owned by `bins`.
BY_SAMPLES_API const uint32_t* by_samples_bins_counts(const by_samples_bins* bins, uint32_t plane);
/// Per cell the sum of its events' size steps (four an octave); owned by `bins`.
BY_SAMPLES_API const uint64_t* by_samples_bins_sizes(const by_samples_bins* bins, uint32_t plane);
BY_SAMPLES_API const by_samples_mark* by_samples_bins_marks(const by_samples_bins* bins, uint32_t plane, size_t* count);

#ifdef __cplusplus
}
#endif
#endif
