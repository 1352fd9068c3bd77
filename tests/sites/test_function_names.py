"""Long names of functions keep what tells them apart: the function itself, not its parameters."""

import pytest

from blockyard.function_names import shortened, spoken, told_apart

WORKLIST = "heap::base::Worklist<{}, (unsigned short)64>::Local::Publish()"
COLLECT = "<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter"


@pytest.mark.parametrize(
    "name, width, short",
    [
        ("walk(node**, node* (*)(node**, int*, void*))", 43, "walk(…)"),
        ("bool app::fill<std::vector<int>, 3>(app::Pool&) const", 45, "app::fill<std::vector<int>, 3>(…) const"),
        ("bool app::fill<std::vector<int>, 3>(app::Pool&) const", 38, "app::fill<std::vector<…>, 3>(…) const"),
        ("bool app::fill<std::vector<int>, 3>(app::Pool&) const", 22, "app::fill<…>(…) const"),
        (WORKLIST.format("std::pair<Object, int>"), 60, "heap::base::Worklist<…>::Local::Publish()"),
        (WORKLIST.format("std::pair<Object, int>"), 30, "…::Local::Publish()"),
        ("app::Set<int>::operator< <int>(app::Set<int> const&)", 35, "app::Set<int>::operator< <int>(…)"),
        ("app::Set<int>::operator()(std::vector<int> const&) const", 36, "app::Set<int>::operator()(…) const"),
        ("(anonymous namespace)::run(int)::{lambda(int)#1}::operator()(int) const", 36, "…::operator()(…) const"),
        (
            "hashbrown::raw::RawTable<(String, u8)>::reserve<H> mod.rs:962",
            50,
            "hashbrown::raw::RawTable<…>::reserve<…> mod.rs:962",
        ),
        (COLLECT, 61, "<Vec<…> as FromIterator<…>>::from_iter"),
        ("load(std::string const&) (libgame.so)", 30, "load(…) (libgame.so)"),
        ("load(int) < read(std::string const&) < main", 30, "load(…) < read(…) < main"),
        ("(anonymous namespace)::outer(std::vector<int> const&)", 34, "(anonymous namespace)::outer(…)"),
        ("app::(anonymous class)::operator()(int, float) const", 43, "app::(anonymous class)::operator()(…) const"),
        ("app::{unnamed type at game.cpp:7}::tick(int, float)", 45, "app::{unnamed type at game.cpp:7}::tick(…)"),
        ("walk_tree_without_duplicates(node*)", 30, "walk_tree_without_duplicates"),
        ("bool walk_tree_without_duplicates<Node*, 3>(Node*)", 30, "walk_tree_without_duplicates"),
        ("libsomething.so.12+0x12345678", 20, "libsomething…2345678"),
    ],
)
def test_a_name_loses_parameters_first_then_template_arguments_then_scopes(name, width, short):
    assert shortened(name, width) == short


@pytest.mark.parametrize(
    "name", ["", "f(", "a<b", ">>)", "operator<<", "<<<<", "x::<", "::::", "(a)(b)(c)", "{{closure}}"]
)
def test_any_text_fits_and_a_short_one_stays(name):
    assert shortened(name, 12) == name
    assert all(len(shortened(name * 9, width)) <= width for width in range(2, 40))


def test_names_that_would_become_the_same_stay_long():
    pair, chunk = WORKLIST.format("std::pair<Object, int>"), WORKLIST.format("Chunk*")
    assert told_apart([pair, "load(int, float)", chunk, pair], [50] * 4) == [pair, "load(int, float)", chunk, pair]
    assert told_apart([pair, "draw()"], [50, 50]) == ["heap::base::Worklist<…>::Local::Publish()", "draw()"]


def test_each_name_has_its_own_room():
    names = ["app::load(int, std::string const&)", "app::draw(float, float, float)", "x(int)"]
    assert told_apart(names, [40, 12, 2])[:2] == [names[0], "app::draw(…)"]


def nested(levels: int) -> str:
    return f"void app::fill<{'v<' * levels}int{'>' * levels}>(int, char)"


def test_template_arguments_may_be_nested_as_deep_as_any_compiler_goes():
    assert shortened(nested(900), 40) == f"app::fill<{'v<' * 8}…{'>' * 9}(…)"
    assert spoken(nested(900)) == nested(900).removeprefix("void ").replace("(int, char)", "()")
    assert len(shortened("f" + "<(" * 5_000, 12)) == 12
    assert len(set(told_apart([nested(level) for level in range(300, 900, 100)], [40] * 6))) == 6


def test_deep_stacks_are_told_apart_without_listing_all_of_them():
    outer = "".join(f" < step_{i}(int)" for i in range(60))
    stacks = [f"grow(int) < fill(int) < {name}(int){outer}" for name in ("load", "draw")]
    short = told_apart(stacks, [20, 20])
    assert [text.split(" < ")[2][:4] for text in short] == ["load", "draw"]
    assert max(map(len, short)) <= 40


def test_people_say_a_function_without_parameters_and_result():
    assert spoken("bool app::fill<std::vector<int>>(app::Pool&) const") == "app::fill<std::vector<int>>()"
    assert spoken("(anonymous namespace)::Set::operator()(int)") == "Set::operator()()"
    assert spoken("app::Foo<int>::operator< <int>(int)") == "app::Foo<int>::operator< <int>()"
    assert spoken("main::build<(u64, String)>") == "main::build<(u64, String)>"
