// Bytes of code that nobody runs, linked in front of a heap, so that the heap's own code lies elsewhere.
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

asm(".text\n\t.skip " TEXT(BENCH_HEAP_PADDING) ", 0x90");
