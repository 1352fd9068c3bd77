// Frames of a game whose objects a script makes: for Lua and LuaJIT, on their own allocator, or with
// ENGINE_ON=blockyard on the heap. Prints nothing; measure.py looks at it from outside.
#include <stdlib.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "blockyard/frame.h"
#include "lua/blockyard_lua.h"

enum { frames = 600 };

// 200 objects come in a frame, each with a place, a name and a function, and live for up to 30 frames.
static const char game[] =
    "local things, number = {}, 0\n"
    "function frame(n)\n"
    "  for i = 1, 200 do\n"
    "    number = number + 1\n"
    "    local thing = {place = {x = i, y = n}, name = 'thing ' .. number, ends = n + i % 30}\n"
    "    thing.step = function() thing.place.x = thing.place.x + 1 end\n"
    "    things[#things + 1] = thing\n"
    "  end\n"
    "  local left = {}\n"
    "  for _, thing in ipairs(things) do\n"
    "    thing.step()\n"
    "    if thing.ends > n then left[#left + 1] = thing end\n"
    "  end\n"
    "  things = left\n"
    "end\n";

int main(void) {
  lua_State* const state = getenv("ENGINE_ON") != NULL ? lua_newstate(by_lua_alloc, NULL) : luaL_newstate();
  if (state == NULL) return 1;
  luaL_openlibs(state);
  if (luaL_dostring(state, game) != 0) return 2;
  for (int frame = 0; frame < frames; ++frame) {
    lua_getglobal(state, "frame");
    lua_pushinteger(state, frame);
    if (lua_pcall(state, 1, 0, 0) != 0) return 3;
    by_frame_mark();
  }
  lua_close(state);
  return 0;
}
