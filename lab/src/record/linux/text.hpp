// What the hooks of dlsym may do with text: a sanitizer's run-time part calls dlsym before the functions of libc that
// it stands in front of work.
#pragma once

namespace blockyard::record {

inline bool same_text(const char* left, const char* right) {
  while (*left != '\0' && *left == *right) {
    ++left;
    ++right;
  }
  return *left == *right;
}

}  // namespace blockyard::record
