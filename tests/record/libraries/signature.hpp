// Functions with signatures that a careless trampoline breaks: registers of both kinds, the stack, a returned
// structure, a variable number of arguments, an exception that passes through.
#pragma once

struct Big {
  double sum;
  long more[6];
};
struct Small {
  int first;
  int second;
  int third;
};

extern "C" {
Big many_arguments(long a, double b, long c, float d, long e, long f, long g, long h, long i, double j, Small k);
double variadic(int count, ...);
bool throws_when(bool wanted);
}
bool is_caught();
