"""Lua's blocks are on the heap, all of them, with its tag, and gone when the state is closed."""


import pytest
from integration import Heard, heard


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    return heard(tmp_path_factory.mktemp("lua"), "lua", package="liblua5.4-dev")


def test_no_allocation_of_lua_went_elsewhere(lua: Heard) -> None:
    assert lua.elsewhere("liblua", "lua") == {}


def test_lua_holds_as_many_bytes_as_were_recorded(lua: Heard) -> None:
    bytes_by_lua = int(lua.stdout.split()[0])
    assert bytes_by_lua > 100_000
    assert sum(lua.live("lua", phase="counted")) == bytes_by_lua


def test_lua_is_told_apart_by_what_runs_it(lua: Heard) -> None:
    tags = lua.tags("lua")
    assert set(tags) == {"lua", "telling/lua"}
    assert min(tags.values()) > 100


def test_closing_the_state_leaks_nothing(lua: Heard) -> None:
    assert lua.live("lua") == []
