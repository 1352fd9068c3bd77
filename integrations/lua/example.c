// A script that makes tables, strings and closures, and a second one with a tag of the program's own around it. In a
// phase called "counted" it prints how many bytes Lua itself says that it holds.
#include <stdio.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "blockyard/frame.h"
#include "blockyard_lua.h"

static const char things[] =
    "things = {}\n"
    "for i = 1, 2000 do\n"
    "  local name = 'thing ' .. i\n"
    "  things[i] = {name = name, tell = function() return name .. '!' end}\n"
    "  if i % 3 == 0 then things[i - 1] = nil end\n"
    "end\n";
static const char told[] =
    "local all = {}\n"
    "for _, thing in pairs(things) do all[#all + 1] = thing.tell() end\n"
    "return #table.concat(all)\n";

int main(void) {
  lua_State* const state = lua_newstate(by_lua_alloc, NULL);
  if (state == NULL) return 1;
  luaL_openlibs(state);
  int failed = luaL_dostring(state, things);
  by_tag_push("telling");
  failed |= luaL_dostring(state, told);
  by_tag_pop();
  const int bytes = lua_gc(state, LUA_GCCOUNT, 0) * 1024 + lua_gc(state, LUA_GCCOUNTB, 0);
  by_phase_mark("counted");
  if (!failed) printf("%d bytes, %d characters\n", bytes, (int)lua_tointeger(state, -1));
  lua_close(state);
  return failed;
}
