// Doubly linked lists through the records of a table, by index; 0 is none. `at(index)` gives a record, whose links are
// `next` and `previous`. All O(1).
#pragma once

#include <cstdint>

namespace blockyard::base {

/// Enters a record at the list's head.
template <class At>
void list_push(std::uint32_t& head, std::uint32_t index, At&& at) {
  auto& record = at(index);
  record.previous = 0;
  record.next = head;
  if (head != 0) {
    at(head).previous = index;
  }
  head = index;
}

/// Takes a record out of its list.
template <class At>
void list_remove(std::uint32_t& head, std::uint32_t index, At&& at) {
  const auto& record = at(index);
  (record.previous != 0 ? at(record.previous).next : head) = record.next;
  if (record.next != 0) {
    at(record.next).previous = record.previous;
  }
}

}  // namespace blockyard::base
