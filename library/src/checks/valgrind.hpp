// What the library tells Valgrind, where its header was there to compile with: else nothing.
#pragma once

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_MAKE_MEM_NOACCESS(address, size) static_cast<void>(0)
#define VALGRIND_MAKE_MEM_UNDEFINED(address, size) static_cast<void>(0)
#define VALGRIND_CREATE_MEMPOOL(pool, redzone, zeroed) static_cast<void>(0)
#define VALGRIND_DESTROY_MEMPOOL(pool) static_cast<void>(0)
#define VALGRIND_MEMPOOL_ALLOC(pool, address, size) static_cast<void>(0)
#define VALGRIND_MEMPOOL_FREE(pool, address) static_cast<void>(0)
#endif
