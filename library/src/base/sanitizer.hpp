// Whether a sanitizer is compiled in that must know of every mapping and every thread.
#pragma once

#if defined(__has_feature)
#define BLOCKYARD_CLANG_HAS(what) __has_feature(what)
#else
#define BLOCKYARD_CLANG_HAS(what) 0
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || BLOCKYARD_CLANG_HAS(thread_sanitizer) || \
    BLOCKYARD_CLANG_HAS(address_sanitizer)
#define BLOCKYARD_SANITIZED 1
#else
#define BLOCKYARD_SANITIZED 0
#endif
