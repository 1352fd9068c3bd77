#include "new_that_fails/checks.hpp"

extern "C" __attribute__((visibility("default"))) const char* broken_in_plugin() { return new_that_fails::broken(); }
