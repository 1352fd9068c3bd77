"""An allocator whose crate can't be built is missing with the reason; the build of everything else goes on."""

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "lab" / "adapters" / "build_crate.cmake"


def build(cargo: str, folder: Path) -> Path:
    """Runs the build step of one crate with this program as Cargo; returns where its adapter belongs."""
    adapter = folder / "blockyard-adapter-tlsf.so"
    command = ["cmake", "-D", f"CARGO={cargo}", "-D", "NAME=tlsf", "-D", f"ADAPTER={adapter}", "-P", SCRIPT]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "CARGO_TARGET_DIR": str(folder / "cargo")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return adapter


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
