/// The whole library for C++: includes every header of it. Each header says what it needs and promises.
#ifndef BLOCKYARD_BLOCKYARD_HPP
#define BLOCKYARD_BLOCKYARD_HPP

#include "blockyard/blockyard.h"

#include "blockyard/allocator.hpp"
#include "blockyard/block_allocator.hpp"
#include "blockyard/block_resource.hpp"
#include "blockyard/forbid.hpp"
#include "blockyard/hash.hpp"
#include "blockyard/hash_map.hpp"
#include "blockyard/lifetime.hpp"
#include "blockyard/list.hpp"
#include "blockyard/node_blocks.hpp"
#include "blockyard/ordered_bytes.hpp"
#include "blockyard/paged_allocator.hpp"
#include "blockyard/rb_map.hpp"
#include "blockyard/rb_set.hpp"
#include "blockyard/rewindable.hpp"
#include "blockyard/static_block_allocator.hpp"
#include "blockyard/tag.hpp"
#include "blockyard/temp.hpp"
#include "blockyard/temp_cursor.hpp"
#include "blockyard/temp_job.hpp"

#endif
