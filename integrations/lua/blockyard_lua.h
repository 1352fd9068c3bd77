/// Lua 5.1 to 5.4 and LuaJIT on Blockyard's heap:
///
///   lua_State* const state = lua_newstate(by_lua_alloc, NULL);
///
/// Everything that the state allocates has the tag "lua" below the tags of the thread, so that `blockyard sites --by
/// tag` tells "ai/lua" from "ui/lua". LuaJIT's machine code stays outside: it takes that from the system itself.
#ifndef BLOCKYARD_LUA_H
#define BLOCKYARD_LUA_H

#include "blockyard/heap.h"
#include "blockyard/tag.h"

/// A lua_Alloc. `user` is not looked at. Any thread may call it, as by_realloc.
static inline void* by_lua_alloc(void* user, void* block, size_t old_size, size_t size) {
  (void)user;
  by_tag_push("lua");
  void* given = NULL;
  if (size != 0) {
    given = by_realloc(block, size);
  } else if (block != NULL) {  // for a new block, Lua says in `old_size` of what kind it is
    by_free_sized(block, old_size);
  }
  by_tag_pop();
  return given;
}

#endif
