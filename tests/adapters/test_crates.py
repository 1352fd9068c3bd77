"""An allocator whose crate can't be built is missing with the reason; the build of everything else goes on."""

import ctypes
import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "lab" / "adapters" / "build_crate.cmake"


def build(cargo: str, folder: Path, link: str = "") -> Path:
    """Runs the build step of one crate with this program as Cargo; returns where its shared object belongs."""
    output = folder / "blockyard-adapter-tlsf.so"
    given = {"CARGO": cargo, "NAME": "tlsf", "PACKAGE": "blockyard-adapter-tlsf", "OUTPUT": str(output), "LINK": link}
    done = subprocess.run(
        ["cmake", *(word for name, value in given.items() for word in ("-D", f"{name}={value}")), "-P", SCRIPT],
        cwd=folder,
        env={**os.environ, "CARGO_TARGET_DIR": str(folder / "cargo")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return output


def cargo_that(folder: Path, script: str) -> str:
    program = folder / "cargo-of-this-test"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_a_machine_without_cargo_leaves_the_reason(tmp_path: Path) -> None:
    adapter = build("BLOCKYARD_CARGO-NOTFOUND", tmp_path)
    assert not adapter.exists()
    assert adapter.with_name(f"{adapter.name}.missing").read_text() == "Cargo was not found when Blockyard was built\n"


def test_a_crate_that_does_not_build_leaves_the_reason_and_what_cargo_said(tmp_path: Path) -> None:
    adapter = build(cargo_that(tmp_path, "echo 'error: no network' >&2; exit 101"), tmp_path)
    assert not adapter.exists()
    assert str(adapter) + ".log" in adapter.with_name(f"{adapter.name}.missing").read_text()
    assert "error: no network" in adapter.with_name(f"{adapter.name}.log").read_text()


def test_a_crate_that_builds_again_takes_the_reason_away(tmp_path: Path) -> None:
    build(cargo_that(tmp_path, "exit 1"), tmp_path)
    adapter = build(
        cargo_that(
            tmp_path,
            "mkdir -p $CARGO_TARGET_DIR/release && echo built > $CARGO_TARGET_DIR/release/libblockyard_adapter_tlsf.so",
        ),
        tmp_path,
    )
    assert adapter.read_text() == "built\n"
    assert not adapter.with_name(f"{adapter.name}.missing").exists()


def test_a_static_library_is_linked_into_one_that_can_be_preloaded(tmp_path: Path) -> None:
    (tmp_path / "part.c").write_text("int of_the_allocator(void) { return 7; }\n")
    cargo = cargo_that(
        tmp_path,
        "mkdir -p $CARGO_TARGET_DIR/release && cc -fPIC -c part.c && "
        "ar rc $CARGO_TARGET_DIR/release/libblockyard_adapter_tlsf.a part.o",
    )
    output = build(cargo, tmp_path, "cc;-Wl,-u,of_the_allocator;-Wl,--defsym=malloc=of_the_allocator")
    loaded = ctypes.CDLL(str(output))
    assert loaded.of_the_allocator() == loaded.malloc() == 7


def test_a_library_that_does_not_link_leaves_the_reason_and_what_the_linker_said(tmp_path: Path) -> None:
    cargo = cargo_that(tmp_path, "true")
    output = build(cargo, tmp_path, "cc;-Wl,-u,of_the_allocator")
    assert not output.exists()
    assert "could not be linked" in output.with_name(f"{output.name}.missing").read_text()
    assert "libblockyard_adapter_tlsf.a" in output.with_name(f"{output.name}.log").read_text()
