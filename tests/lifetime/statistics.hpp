// What the lifetimes count, as values.
#pragma once

#include <cstddef>

#include "blockyard/lifetime.h"

inline by_lifetime_statistics statistics() {
  by_lifetime_statistics all;
  by_lifetime_get_statistics(&all);
  return all;
}

/// Of temp job's chunks, what is not free.
inline std::size_t used_bytes() {
  const by_lifetime_statistics all = statistics();
  return all.temp_job_chunk_bytes - all.temp_job_free_bytes;
}
