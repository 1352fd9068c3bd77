"""Writing files whole or not at all; and those that a verb exports, of which one may be standard output."""

import csv
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from blockyard.errors import UserError

PARTIAL = ".partial"


def whole(path: Path, write: Callable[[Path], object]) -> None:
    """Has `write` fill a file beside `path`, then renames it: half a file never has the final name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL)
    try:
        write(partial)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty folder to write into, which takes its place when the block ends and is gone when it fails: nothing reads
    half of it."""
    partial = path.with_name(path.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def whole_text(path: Path, text: str) -> None:
    """`whole` of a text that is there already."""
    whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def whole_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> Path:
    def fill(partial: Path) -> None:
        with partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)

    whole(path, fill)
    return path


def sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror or error}") from None


STANDARD_OUTPUT = "-"


def check_outputs(*paths: str | None) -> None:
    """Before anything is computed: each form needs a name of its own that can be written, and only one can be
    printed."""
    given = [path for path in paths if path is not None]
    if "" in given:
        raise UserError("the name of a file to write is empty; '-' is standard output")
    if len(set(given)) < len(given):
        raise UserError(
            "two forms can't both go to "
            + next("standard output" if path == STANDARD_OUTPUT else path for path in given if given.count(path) > 1)
        )
    for path in given:
        nearest = next(folder for folder in Path(path).absolute().parents if folder.exists())
        can_be = nearest.is_dir() and os.access(nearest, os.W_OK) and not Path(path).is_dir()
        if path != STANDARD_OUTPUT and not can_be:
            raise UserError(f"{path} can't be written; name another file")


def exported(printed: bool, *forms: tuple[str | None, Callable[[], str]]) -> bool:
    """Writes each form where it was asked for; whether any was `printed`."""
    return any([printed, *(_export(path, render()) for path, render in forms if path is not None)])


def _export(path: str, content: str) -> bool:
    """Whether it went to standard output."""
    if path == STANDARD_OUTPUT:
        click.echo(content, nl=False)
        return True
    try:
        whole_text(Path(path), content)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror or error}") from None
    return False
