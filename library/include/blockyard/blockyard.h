/// The whole library for C: includes every C header of it. Each header says what it needs and promises.
#ifndef BLOCKYARD_BLOCKYARD_H
#define BLOCKYARD_BLOCKYARD_H

#include "blockyard/block.h"
#include "blockyard/forbid.h"
#include "blockyard/frame.h"
#include "blockyard/heap.h"
#include "blockyard/lifetime.h"
#include "blockyard/tag.h"

#endif
