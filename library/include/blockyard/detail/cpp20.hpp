/// Says in one sentence what a compiler would otherwise say in hundreds. Included first by the headers for C++.
#if !defined(__cplusplus) || __cplusplus < 202002L
#error "Blockyard's C++ headers need C++20 (-std=c++20); before, include its C headers: blockyard/blockyard.h"
#endif
