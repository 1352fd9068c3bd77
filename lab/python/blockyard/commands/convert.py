"""`blockyard convert`: a journal in another form."""

from pathlib import Path
from typing import Any

import click

from blockyard import journal_tool, native, options


@click.command(
    short_help="Write a journal in another form.",
    epilog="Example: blockyard convert game.journal.zst -o game.byj --join-realloc",
)
@click.argument("journal", type=options.Journal())
@options.output_journal
@click.option(
    "--plain", is_flag=True, help="Text: only lines of events, without the # lines that hold everything else."
)
@click.option(
    "--join-realloc", is_flag=True, help="A free and an allocation of the same instant and thread become one realloc."
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Leave out the program, its arguments, paths and build-ids; number the names of threads, phases, tags and "
    "functions.",
)
@click.option("--addresses", is_flag=True, help="Keep the program's pointers in a .byj.")
@click.option(
    "--from",
    "from_",
    type=click.Choice(["byj", "text", "heaptrack", "unreal", "aosp", "logalloc", "mtrace"]),
    help="JOURNAL's form, where its first line does not show it.",
)
@click.option("--to", type=click.Choice(["aosp"]), help="Write the form of Android's memory_replay.")
@click.option(
    "--rate",
    type=options.Finite(min=0.001, max=1e9),
    metavar="N",
    help="Of a journal without times: so many events per second.",
)
@click.option(
    "--frames-of",
    type=click.IntRange(1, 1 << 32),
    metavar="N",
    help="Of a journal without times: mark a frame after every N events; 60 a second unless --rate says otherwise.",
)
@options.overwrite
@options.as_json
def command(journal: Path, output: Path, force: bool, as_json: bool, **how: Any) -> None:
    """Write JOURNAL in another form: .byj, or text with an event per line.

    JOURNAL is a .byj, a text journal, or the log of another tool, also as .zst or .gz: heaptrack, Unreal's malloc
    replay, Android's memory_replay, Firefox's logalloc, glibc's mtrace. Its first line shows which. What a log lacks is
    repaired by rules that the journal names; `info` shows them.

    Nothing is lost from .byj to text and back, unless --plain.
    """
    journal_tool.write("convert", journal, output, native.arguments(how), force=force, as_json=as_json)
