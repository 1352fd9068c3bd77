"""blockyard locality: how allocators place many equal blocks, and how long that takes."""

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

from blockyard import options
from blockyard.errors import UserError
from blockyard.locality import tables
from blockyard.locality.measure import OURS, Test, measure, subjects
from blockyard.report import blocks

# The study's temp memory was full at allocation 819; ours has no header, so that 818 blocks of 4 bytes fill it.
_STUDY = {"count": 1000, "size": 4, "align": 4, "temp_region": 818 * 4, "aged": True}

_TABLE = "locality.csv"
# Where files are written before they take their place; left behind only by a call that was killed.
_UNFINISHED = ".locality.partial"

_EPILOG = """\b
Example: blockyard locality --preset study -o locality
         blockyard locality -a temp,temp-job,glibc --size 64 --align 16 -o d
         blockyard locality --draw locality -o pictures"""


@click.command(short_help="How far apart allocators place blocks, and how fast.", epilog=_EPILOG)
@options.allocators("temp, temp-job, persistent, block, and names as 'blockyard replay' takes them.  [defaults]")
@click.option("--count", type=click.IntRange(2, 10_000_000), default=1000, show_default=True, help="How many blocks.")
@click.option("--size", type=click.IntRange(1, 1 << 20), default=4, show_default=True, help="Bytes of a block.")
@click.option("--align", type=click.IntRange(1, 16384), default=4, show_default=True, help="A power of two.")
@click.option(
    "--temp-region",
    type=click.IntRange(64, 1 << 30),
    metavar="BYTES",
    help="Size of temp's region, which then does not grow. Default: 256 KiB.",
)
@click.option(
    "--aged",
    is_flag=True,
    help="First allocate 20,000 blocks of many sizes and free half of them: a heap that has been in use.",
)
@click.option(
    "--preset",
    type=click.Choice(["study"]),
    help="The test of jacksondunstan.com/articles/5406: 1000 blocks of 4 bytes, aged, temp full at allocation 819.",
)
@click.option("--repeats", type=click.IntRange(1, 1000), default=5, show_default=True, help="Processes per allocator.")
@click.option(
    "--draw",
    type=options.AnyPath(),
    metavar="FILES",
    help="Measure nothing: draw the CSV files in this folder, whichever program wrote them.",
)
@options.output_folder("Where files and pictures go: new, empty, or an earlier result of this command.")
def command(
    allocators: tuple[str, ...], preset: str | None, repeats: int, draw: Path | None, output: Path, **given: Any
) -> None:
    """Allocate many equal blocks and free them: how long, and how far apart.

    Each allocator and repeat has a process of its own. DIR gets CSV files (NAME_times, NAME_distances, NAME_buckets),
    locality.csv with the table, and pictures of times, distances and buckets.
    """
    if draw is not None:
        _refuse("--draw measures nothing, so {} can't go with it", lambda name: name not in ("draw", "output"))
        _draw(draw, output)
        return
    if preset is not None:
        _refuse("--preset sets {} itself; leave one of the two out", lambda name: name in _STUDY)
    if given["align"] & (given["align"] - 1):
        raise UserError(f"--align {given['align']} is not a power of two")
    test = Test(**(_STUDY if preset == "study" else given))
    errors = Console(stderr=True, highlight=False)
    _refuse_foreign(output, (output / _TABLE).is_file())
    chosen, missing = subjects(options.names(allocators) or (*OURS, "defaults"))
    for sentence in missing:
        errors.print(sentence, markup=False)
    if not chosen:
        raise UserError("none of these allocators can be had here")
    _refuse_file_names([one.name for one in chosen])
    if given["temp_region"] is not None and "temp" not in [one.name for one in chosen]:
        raise UserError("--temp-region is the size of temp's region, and temp is not among the allocators")
    with _filled(output):  # before the measuring: what can't be written is said at once
        pass
    with errors.status("starting") as status:
        results, failed = measure(
            chosen, test, repeats, lambda name, repeat: status.update(f"{name}, repeat {repeat} of {repeats}")
        )
    if not results:
        raise UserError("\n".join(f"{name}: {why}" for name, why in failed.items()))
    for name, why in failed.items():
        errors.print(f"{name} is left out: {why}", markup=False, soft_wrap=True)
    from blockyard.locality import pictures  # here: matplotlib takes longer to load than `blockyard --help` may take

    rows = {name: tables.row(name, runs, test) for name, runs in results.items()}
    with _filled(output) as unfinished:
        for name, runs in results.items():
            tables.write_study_files(unfinished, name, runs, test)
        tables.write_table(unfinished / _TABLE, list(rows.values()))
        pictures.draw(unfinished, results, test)
        tables.remove_study_files(output / _TABLE, results)
    click.echo(blocks.text([tables.shown(rows.values()), tables.placements(results, test.size), *tables.ratios(rows)]))
    click.echo(f"written to {output}")


def _refuse(sentence: str, wrong: Callable[[str], bool]) -> None:
    """Options that stand in the command line beside one that makes them meaningless."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        if wrong(name) and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UserError(sentence.format(parameter.opts[-1]))


def _draw(source: Path, output: Path) -> None:
    """Pictures of files that are there; they may go beside them."""
    from blockyard.locality import pictures

    results = tables.read(source)
    ours = {f"{name}.{suffix}" for name in pictures.PICTURES for suffix in ("png", "svg")}
    _refuse_foreign(output, output.is_dir() and output.samefile(source), ours)
    counts = sorted({len(runs[0].addresses) for runs in results.values()})
    with _filled(output) as unfinished:
        pictures.draw(unfinished, results, f"{' or '.join(map(str, counts))} blocks; from the files in {source.name}")
    click.echo(blocks.text([tables.times(results), tables.placements(results, 0)]))
    click.echo(f"written to {output}")


def _refuse_file_names(names: Sequence[str]) -> None:
    """A shared object of the user's, called as the files of one of ours are."""
    for name, stem in tables.FILE_NAMES.items():
        if stem in names:
            raise UserError(f"{stem} is what the files of {name} are called; choose another name for the allocator")


@contextlib.contextmanager
def _filled(output: Path) -> Iterator[Path]:
    """A folder to write to, whose files move to `output` when all are there: after a failure an earlier result is what
    it was, and a new folder is not there."""
    is_new = not output.exists()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{output} can't be made: {error.strerror}; choose another folder with -o") from None
    unfinished, kept = output / _UNFINISHED, "nothing is left of it" if is_new else "what is there is as it was"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir()
        yield unfinished
        kept = "what is there is not complete"
        for path in sorted(unfinished.iterdir()):
            path.replace(output / path.name)
    except OSError as error:
        raise UserError(f"{output} can't be written: {error.strerror or error}; {kept}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        if is_new and not any(output.iterdir()):
            output.rmdir()


def _refuse_foreign(output: Path, earlier: bool, ours: Iterable[str] = ()) -> None:
    """An `earlier` result may be replaced, and files that are called like `ours`, and nothing else."""
    if output.exists() and not output.is_dir():
        raise UserError(f"{output} is a file; -o needs a folder")
    if output.is_dir() and not earlier:
        names = sorted(entry.name for entry in output.iterdir() if entry.name not in {*ours, _UNFINISHED})
        if names:
            raise UserError(f"{output} already holds other files ({names[0]}); choose a new or empty folder")
