"""The `blockyard` command of this tree, as tests of every part run it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def line(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "blockyard", *map(str, arguments)]


def environment(columns: int = 80, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "lab" / "python"), "COLUMNS": str(columns), **more}


def blockyard(
    *arguments: object,
    cwd: Path | None = None,
    columns: int = 80,
    under: tuple[str, ...] = (),
    more: dict[str, str] | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """What it printed and how it ended. `under`: a command that starts it; `more`: variables for it."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    env = environment(columns, **(more or {}))
    return subprocess.run([*under, *line(*arguments)], cwd=cwd, env=env, text=True, check=False, **(pipes | options))


def success(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """A command that did what it was told to."""
    assert done.returncode == 0, done.stderr
    return done


def told(verb: str, *arguments: object, **options: Any) -> Any:
    """The JSON of a verb."""
    return json.loads(success(blockyard(verb, "--json", *arguments, **options)).stdout)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """What a command that failed says: sentences, no traceback."""
    assert done.returncode == 1, done.stderr
    assert done.stderr and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The only one that a refused command says."""
    said = refusal(done)
    assert said.startswith("blockyard: ") and said.count("\n") == 1, said
    return said


def started(*arguments: object, cwd: Path | None = None, **options: Any) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(line(*arguments), cwd=cwd, env=environment(), text=True, **(pipes | options))
