/// BY_API: marks the declarations that libblockyard exports. Included by every public header.
#ifndef BLOCKYARD_DETAIL_VISIBILITY_H
#define BLOCKYARD_DETAIL_VISIBILITY_H

#if defined(_WIN32)
#define BY_API
#else
#define BY_API __attribute__((visibility("default")))
#endif

#endif
