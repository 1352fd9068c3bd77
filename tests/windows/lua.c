/* Lua on the heap, by its own hook, with every block in a journal: what an engine's allocator does. The arguments are
   the journal and how many frames to run. */
#include <stdio.h>
#include <stdlib.h>

#include "blockyard/frame.h"
#include "blockyard/heap.h"
#include "blockyard/journal.h"
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static void* engine_allocator(void* user, void* block, size_t old_size, size_t size) {
  (void)user;
  (void)old_size;
  if (size == 0) {
    by_journal_free(block);
    by_free(block);
    return NULL;
  }
  void* const given = by_realloc(block, size);
  if (given != NULL) by_journal_realloc(block, given, size);
  return given;
}

static const char* const script =
    "local world = {}\n"
    "function frame(n)\n"
    "  local names = {}\n"
    "  for i = 1, 200 do names[i] = 'enemy ' .. i .. ' of frame ' .. n end\n"
    "  table.sort(names)\n"
    "  local walk = coroutine.wrap(function() coroutine.yield(n) end)\n"
    "  world[n % 20 + 1] = { text = table.concat(names, ','), walk = walk }\n"
    "  world[n % 20 + 1].walk()\n"
    "  return #world\n"
    "end\n";

int main(int argc, char** argv) {
  if (argc != 3 || by_journal_open(argv[1]) != 0) return 2;
  lua_State* const state = lua_newstate(engine_allocator, NULL);
  if (state == NULL) return 3;
  luaL_openlibs(state);
  if (luaL_dostring(state, script) != LUA_OK) return 4;
  for (int frame = 1; frame <= atoi(argv[2]); ++frame) {
    lua_getglobal(state, "frame");
    lua_pushinteger(state, frame);
    if (lua_pcall(state, 1, 1, 0) != LUA_OK) {
      printf("%s\n", lua_tostring(state, -1));
      return 5;
    }
    lua_pop(state, 1);
    by_frame_mark();
  }
  lua_close(state);
  const char* const broken = by_heap_check();
  if (broken != NULL) {
    printf("%s\n", broken);
    return 6;
  }
  return by_journal_close();
}
