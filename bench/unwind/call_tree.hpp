// A program of 20 functions that call each other at random, in two compilations.
#pragma once

#include <cstdint>

struct Shape {
  unsigned depth;   ///< calls from the top of the tree to an event
  unsigned calls;   ///< that a function makes: with 1, each event has a path of its own from the top on
  unsigned events;  ///< at which to stop
};

void call_tree_without(const Shape& shape, void (*event)());
void call_tree_with(const Shape& shape, void (*event)());
