"""What a user may write after -a, what comes back, and what is said of an allocator that can't be had."""

import json
from pathlib import Path

import pytest
from the_command import blockyard, success

from blockyard import allocators
from blockyard.errors import UserError


def test_all_is_every_allocator_in_its_defaults_then_every_prefaulted_variant() -> None:
    names = [choice.name for choice in allocators.resolve("all")]
    known = allocators.load()
    assert names == [*known, *(f"{name}@prefaulted" for name, entry in known.items() if not entry.absent)]


def test_every_allocator_of_the_comparison_is_listed() -> None:
    wanted = "null glibc dlmalloc jemalloc mimalloc rpmalloc tlsf google-tcmalloc tcmalloc tbbmalloc snmalloc scudo"
    assert {*wanted.split(), "blockyard"} <= set(allocators.load())


def test_names_come_back_in_the_order_asked_for_and_once() -> None:
    names = [choice.name for choice in allocators.resolve(["jemalloc@prefaulted,glibc", "glibc", "null"])]
    assert names == ["jemalloc@prefaulted", "glibc", "null"]


def test_a_prefaulted_variant_asks_to_be_populated_and_its_defaults_do_not() -> None:
    defaults, prefaulted = allocators.resolve("dlmalloc,dlmalloc@prefaulted")
    assert (defaults.populate, prefaulted.populate) == (False, True)
    assert defaults.options == "" and "trim_threshold=max" in prefaulted.options


def test_every_run_gets_room_for_static_tls_beside_the_users_own_tunables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1:glibc.malloc.mmap_max=7")
    defaults, prefaulted = allocators.resolve("glibc,glibc@prefaulted")
    assert defaults.environment["GLIBC_TUNABLES"].split(":") == [
        "glibc.malloc.arena_max=1",
        "glibc.malloc.mmap_max=7",
        "glibc.rtld.optional_static_tls=20000",
    ]
    tunables = prefaulted.environment["GLIBC_TUNABLES"].split(":")
    assert "glibc.malloc.arena_max=1" in tunables
    assert "glibc.malloc.mmap_max=0" in tunables
    assert "glibc.malloc.mmap_max=7" not in tunables


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("jemaloc", "did you mean jemalloc?"),
        ("frobnicator", "NAME=FILE"),
        ("glibc@fast", "there is no variant 'fast' of glibc"),
        ("null@prefaulted", "has no @prefaulted variant"),
        ("mine=/nonexistent/libmine.so", "there is no file /nonexistent/libmine.so"),
        ("glibc=/bin/true", "is an allocator of Blockyard's own"),
        ("a/b=/bin/true", "can't name an allocator"),
        ("", "no allocator was named"),
        (" , ", "no allocator was named"),
    ],
)
def test_a_name_that_does_not_exist_is_one_sentence_with_a_way_out(spec: str, words: str) -> None:
    with pytest.raises(UserError) as error:
        allocators.resolve(spec)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_one_name_can_not_stand_for_two_files() -> None:
    with pytest.raises(UserError, match="two different allocators are called 'mine'"):
        allocators.resolve("mine=/bin/true,mine=/bin/false")


def test_an_allocator_whose_library_is_absent_is_missing_with_reason_and_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = tmp_path / "allocators.toml"
    registry.write_text(
        '[jemalloc]\ntitle = "jemalloc"\nadapter = "blockyard-adapter-jemalloc.so"\n'
        'library = [{ path = "libnowhere.so.9", from = "Debian", package = "libnowhere9" }]\n'
    )
    monkeypatch.setattr(allocators.native, "data", lambda *_: registry)
    [choice] = allocators.resolve("jemalloc")
    assert choice.missing is not None
    assert "libnowhere.so.9" in choice.missing and "libnowhere9" in choice.missing
    assert "\n" not in choice.missing


def test_a_fallback_library_is_used_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = tmp_path / "allocators.toml"
    registry.write_text(
        '[null]\ntitle = "null"\nadapter = "blockyard-adapter-null.so"\nlibrary = [\n'
        '  { path = "python:nowhere/libnowhere.so", from = "PyPI", package = "nowhere==1.0" },\n'
        '  { path = "libc.so.6", from = "Debian", package = "libc6" },\n]\n'
    )
    monkeypatch.setattr(allocators.native, "data", lambda *_: registry)
    [choice] = allocators.resolve("null")
    assert choice.missing is None
    assert choice.origin == "Debian libc6"
    assert "in place of nowhere==1.0, which is not here" in choice.notes


def test_a_library_that_was_not_built_is_missing_with_what_the_build_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = tmp_path / "allocators.toml"
    registry.write_text(
        '[null]\ntitle = "null"\nadapter = "blockyard-adapter-null.so"\n'
        'library = [{ path = "built:libnull-crate.so", from = "crate", package = "null-sys" }]\n'
    )
    monkeypatch.setattr(allocators.native, "data", lambda *_: registry)
    build = tmp_path / "lab" / "adapters"
    build.mkdir(parents=True)
    (build / "libnull-crate.so.missing").write_text("it takes minutes to compile\n")
    (build / "blockyard-adapter-null.so").touch()
    monkeypatch.setenv("BLOCKYARD_BUILD", str(tmp_path))
    assert allocators.resolve("null")[0].missing == "it takes minutes to compile"


def test_an_adapter_that_was_not_built_is_missing_with_what_the_build_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab" / "adapters").mkdir(parents=True)
    (tmp_path / "lab" / "adapters" / "blockyard-adapter-tlsf.so.missing").write_text(
        "Cargo was not found when it was built\n"
    )
    monkeypatch.setenv("BLOCKYARD_BUILD", str(tmp_path))
    tlsf, glibc = allocators.resolve("tlsf,glibc")
    assert tlsf.missing == "Cargo was not found when it was built"
    assert glibc.missing == "blockyard-adapter-glibc.so was not built"


def test_the_listing_fits_eighty_columns_and_names_every_allocator() -> None:
    done = success(blockyard("allocators"))
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    for name in allocators.load():
        assert f"\n{name} " in f"\n{done.stdout}"


def test_the_listing_as_json_says_what_is_available_and_why_the_rest_is_not() -> None:
    done = success(blockyard("allocators", "--json"))
    entries = {entry["name"]: entry for entry in json.loads(done.stdout)}
    assert set(entries) == {choice.name for choice in allocators.resolve("all")}
    for entry in entries.values():
        assert entry["available"] == (entry["missing"] is None)
        assert not entry["available"] or entry["version"]
