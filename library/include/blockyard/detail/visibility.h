/// BY_API: marks the declarations that libblockyard exports. BY_WEAK: marks functions that may be missing when a
/// program is linked and when it runs. Included by every public header.
#ifndef BLOCKYARD_DETAIL_VISIBILITY_H
#define BLOCKYARD_DETAIL_VISIBILITY_H

#if defined(_WIN32)
#define BY_API
#define BY_WEAK
#else
#define BY_API __attribute__((visibility("default")))
#if __has_attribute(noplt)
// Without noplt, a program that is linked at a fixed address keeps the null that the linker found.
#define BY_WEAK __attribute__((weak, noplt))
#else
#define BY_WEAK __attribute__((weak))
#endif
#endif

#endif
