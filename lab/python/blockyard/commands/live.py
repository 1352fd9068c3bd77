"""blockyard live: a program watched while it runs."""

import os
import shlex
import signal
import sys
from pathlib import Path

import click

import blockyard.live
from blockyard import native
from blockyard.errors import UserError
from blockyard.live.follower import Watch
from blockyard.live.recorder import Recorder
from blockyard.options import AnyPath, Finite
from blockyard.terminal import terminate_like_interrupt

_MISSING = "the view needs Textual; install it with pip install 'blockyard[live]', or use --json"
_MAGIC = b"\x89BYJ\r\n\x1a\n"  # lab/src/journal/format.hpp; of a journal that is just begun, a part of it
_EPILOG = """\b
Examples:
  blockyard live -- ./game --level 3
  blockyard live game.byj
  blockyard live --json -- ./game | jq .live.bytes
"""


class _Live(click.Command):
    """Knows whether its arguments are a program's: click drops the `--` before them."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        context.meta["has_program"] = "--" in arguments
        return super().parse_args(context, arguments)


@click.command(
    cls=_Live,
    short_help="Watch a program while it runs: frames, memory, sites.",
    context_settings={"allow_interspersed_args": False},
    epilog=_EPILOG,
)
@click.option("-o", "--output", type=AnyPath(), default=None, help="The journal to write [default: PROGRAM.byj].")
@click.option("--pid", type=click.IntRange(min=1), metavar="N", help="Watch a process that already runs.")
@click.option("--frame-symbol", metavar="NAME", help="Calls of this function end a frame, as 'record' takes it.")
@click.option("--fps", type=Finite(1, 10_000), default=60.0, metavar="N", help="The budget of a frame.  [60]")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON a second in place of the view.")
@click.option("--browser", is_flag=True, help="Show the view in a browser of this machine.")
@click.option(
    "--port", type=click.IntRange(1, 65_535), default=8000, show_default=True, help="Where --browser listens."
)
@click.argument("journal_or_command", nargs=-1, metavar="JOURNAL | -- PROGRAM [ARGS]...")
@click.pass_context
def command(
    context: click.Context,
    output: Path | None,
    pid: int | None,
    frame_symbol: str | None,
    fps: float,
    as_json: bool,
    browser: bool,
    port: int,
    journal_or_command: tuple[str, ...],
) -> None:
    """Show what PROGRAM allocates while it runs and is recorded; or what is written to JOURNAL by 'blockyard record'.

    Space pauses, the arrow keys walk frames, Enter shows the call stacks of a site, m marks a moment: what stays from
    then on is listed. q ends the view, not the program. At the end the journal is there as ever.
    """
    program = list(journal_or_command) if context.meta["has_program"] else []
    if sum((bool(program), pid is not None, bool(journal_or_command) and not program)) != 1:
        raise UserError("name what to watch: '-- PROGRAM', '--pid N', or a journal that is being written")
    if as_json and browser:
        raise UserError("--json and --browser both say where to show it; give one of them")
    if not as_json:
        _require_view(browser)
    if not program and pid is None:
        if len(journal_or_command) > 1:
            raise UserError("one journal at a time; a program's arguments stand behind '--'")
        if output is not None or frame_symbol is not None:
            raise UserError("a journal that is written elsewhere takes neither -o nor --frame-symbol")
        journal = Path(journal_or_command[0])
        if not journal.is_file():
            raise UserError(f"{journal} was not found; name a journal, or a program behind '--'")
        with journal.open("rb") as file:
            if not _MAGIC.startswith(file.read(len(_MAGIC))):
                raise UserError(f"{journal} is no .byj; 'blockyard convert' makes one of other journals")
        _show(journal, None, fps, as_json, browser, port)
        return
    journal = output or Path(f"{Path(program[0]).name if program else pid}.byj")
    options = ["-o", journal, *(["--frame-symbol", frame_symbol] if frame_symbol else [])]
    target = ["--", *program] if program else ["--pid", str(pid)]
    if journal.exists():
        raise UserError(f"{journal} exists already; name another file with -o")
    native.path("blockyard-follow")  # before anything is recorded that nobody could show
    recorder = Recorder([*options, *target], holds_output=not (as_json or browser))
    if pid is not None and as_json:
        # What ends the recording ends the lines: the last one is about all of it.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: recorder.interrupt())
    elif pid is not None:
        terminate_like_interrupt()
    try:
        if recorder.has_begun(journal):
            _show(journal, recorder, fps, as_json, browser, port)
    finally:  # also where nothing can be shown: a process that ran before is left as it was
        if pid is not None:
            recorder.interrupt()
        elif recorder.runs():
            click.echo(f"blockyard: {program[0]} runs on and is recorded; Ctrl-C reaches it", err=True)
        code = recorder.finish()
    sys.exit(code)


def _require_view(browser: bool) -> None:
    try:
        import textual  # noqa: F401

        if browser:
            import textual_serve  # noqa: F401
    except ImportError:
        raise UserError(_MISSING) from None
    # In a browser, too, the application is started without a terminal.
    is_served = "TEXTUAL_DRIVER" in os.environ
    if not browser and not is_served and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("the view needs a terminal; use --json or --browser without one")


def _show(journal: Path, recorder: Recorder | None, fps: float, as_json: bool, browser: bool, port: int) -> None:
    """Until the user has seen enough, or, as JSON, to the journal's end."""
    if browser:
        from textual_serve.server import Server

        served = [sys.executable, "-P", "-m", "blockyard", "live", "--fps", f"{fps:g}", journal.absolute()]
        Server(
            shlex.join(map(os.fspath, served)),
            host="127.0.0.1",
            port=port,
            title=journal.name,
            templates_path=Path(blockyard.live.__file__).with_name("templates"),
        ).serve()
        return
    watch = Watch(journal, fps, stay=not as_json, recorder=recorder)
    if not as_json:
        from blockyard.live.app import LiveApp

        LiveApp(watch).run()
        return
    try:
        for text in watch.texts():
            sys.stdout.buffer.write(text)
            sys.stdout.flush()
    finally:
        watch.close()
