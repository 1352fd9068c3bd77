#include "signature.hpp"

#include <cstdarg>
#include <stdexcept>

Big many_arguments(long a, double b, long c, float d, long e, long f, long g, long h, long i, double j, Small k) {
  Big big{};
  big.sum =
      static_cast<double>(a + c + e + f + g + h + i) + b + static_cast<double>(d) + j + k.first + k.second + k.third;
  return big;
}

double variadic(int count, ...) {
  va_list rest;
  va_start(rest, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += va_arg(rest, double);
  va_end(rest);
  return sum;
}

bool throws_when(bool wanted) {
  if (wanted) throw std::runtime_error("wanted");
  return true;
}

bool is_caught() {
  try {
    throws_when(true);
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}
