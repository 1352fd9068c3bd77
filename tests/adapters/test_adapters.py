"""Every allocator that this machine has keeps malloc's promises when driven through its adapter, and is who it says."""

import os
import subprocess
from pathlib import Path

import pytest

from blockyard import allocators, native
from blockyard.allocators import Choice

BUILD = Path(os.environ.get("BLOCKYARD_BUILD") or Path(__file__).parents[2] / "build" / "release")
TOOLS = BUILD / "tests" / "adapters"
CHOICES = {choice.name: choice for choice in allocators.resolve("all")}
# The share of its page faults that a prefaulted variant may keep, where that is more than a quarter. Scudo maps every
# block above 64 KiB on its own: nothing populated beforehand reaches those.
REMAINING_FAULTS = {"scudo": 3 / 4}
DEFAULTS = [name for name in CHOICES if "@" not in name]
PREFAULTED = [name for name in CHOICES if "@" in name]


def available(name: str) -> Choice:
    choice = CHOICES[name]
    if choice.missing:
        pytest.skip(f"THE ALLOCATOR {name} WAS NOT TESTED, it is missing here: {choice.missing}")
    return choice


def exercise(mode: str, choice: Choice) -> subprocess.CompletedProcess:
    """One run of the driver in a process of its own, as a replay would be."""
    return subprocess.run(
        [TOOLS / "adapter-exercise", mode, choice.adapter, choice.options, str(int(choice.populate))],
        env={**os.environ, **choice.environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def page_faults(choice: Choice) -> int:
    done = exercise("faults", choice)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("name", [name for name in CHOICES if name != "null"])
def test_contents_alignment_and_reallocation_hold_on_four_threads(name: str) -> None:
    done = exercise("use", available(name))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", DEFAULTS)
def test_an_allocator_that_is_here_tells_its_version(name: str) -> None:
    choice = available(name)
    assert any(character.isdigit() for character in choice.version)


def test_versions_come_from_the_allocators_themselves() -> None:
    """glibc's own answer, against what the C library says to Python."""
    assert CHOICES["glibc"].version == os.confstr("CS_GNU_LIBC_VERSION").removeprefix("glibc ")


@pytest.mark.parametrize("name", PREFAULTED)
def test_a_prefaulted_variant_has_its_memory_populated_beforehand(name: str) -> None:
    """Page faults of filling and churning 48 MiB on two threads, less the floor that the driver itself has."""
    floor = page_faults(available("null"))
    prefaulted = page_faults(available(name)) - floor
    defaults = page_faults(available(CHOICES[name].base)) - floor
    # mimalloc's defaults may get huge pages, a fault for each 2 MiB: too few to tell the two apart.
    allowed = max(defaults * REMAINING_FAULTS.get(CHOICES[name].base, 1 / 4), 200)
    assert prefaulted <= allowed, f"{prefaulted} page faults, {defaults} with the defaults"


def test_only_an_allocator_that_is_not_thread_safe_asks_for_a_lock() -> None:
    available("tlsf")
    assert [name for name in CHOICES if CHOICES[name].needs_lock] == ["tlsf", "tlsf@prefaulted"]
    assert [name for name in CHOICES if CHOICES[name].needs_pool] == ["tlsf", "tlsf@prefaulted"]


def test_null_gives_every_block_the_same_writable_buffer() -> None:
    done = exercise("faults", available("null"))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_foreign_allocator_of_malloc_and_free_alone_keeps_mallocs_promises() -> None:
    [choice] = allocators.resolve(f"mine={TOOLS / 'least-malloc.so'}")
    assert choice.missing is None
    assert choice.foreign == TOOLS / "least-malloc.so"
    assert choice.flags == {"sized_free", "emulates_zeroed", "emulates_reallocate", "emulates_aligned"}
    done = exercise("use", choice)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_foreign_allocator_with_the_whole_family_is_driven_by_its_own_functions() -> None:
    jemalloc = available("jemalloc")
    path = subprocess.run(
        ["sh", "-c", "ldconfig -p | sed -n 's/.*libjemalloc.so.2 .*=> //p' | head -n 1"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if not path:
        pytest.skip(f"THE FOREIGN jemalloc WAS NOT TESTED: ldconfig does not know {jemalloc.origin}")
    [choice] = allocators.resolve(f"mine={path}")
    assert (choice.missing, choice.flags) == (None, frozenset())
    assert exercise("use", choice).returncode == 0


def test_an_adapter_of_ones_own_is_used_as_it_is() -> None:
    adapter = native.path("blockyard-adapter-glibc.so")
    [choice] = allocators.resolve(f"mine={adapter}")
    assert (choice.missing, choice.foreign, choice.adapter) == (None, None, adapter)


def test_a_foreign_file_without_malloc_is_missing_with_the_reason() -> None:
    [choice] = allocators.resolve(f"mine={TOOLS / 'no-malloc.so'}")
    assert choice.missing is not None and "does not export malloc" in choice.missing


def test_a_foreign_file_that_is_no_shared_object_is_missing_with_the_reason(tmp_path: Path) -> None:
    text = tmp_path / "notes.so"
    text.write_text("not a shared object")
    [choice] = allocators.resolve(f"mine={text}")
    assert choice.missing is not None and str(text) in choice.missing
