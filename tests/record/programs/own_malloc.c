// A malloc that the program exports, as one that is linked into it statically. It is glibc's under another name.
#include <stddef.h>

void* __libc_malloc(size_t size);
void __libc_free(void* block);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);

void* malloc(size_t size);
void free(void* block);
void* calloc(size_t count, size_t size);
void* realloc(void* block, size_t size);

void* malloc(size_t size) { return __libc_malloc(size); }
void free(void* block) { __libc_free(block); }
void* calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void* realloc(void* block, size_t size) { return __libc_realloc(block, size); }
