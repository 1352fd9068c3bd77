/* A shared object that is no allocator. */
__attribute__((visibility("default"))) int answer(void);

int answer(void) { return 42; }
