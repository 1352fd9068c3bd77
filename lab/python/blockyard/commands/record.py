"""blockyard record: a program's allocations into a journal."""

import signal
import sys
from pathlib import Path
from typing import Any

import click

from blockyard import asleep, attaching, journal_tool, recording, recording_summary
from blockyard.errors import UserError
from blockyard.options import AnyPath, Seconds


def _signal_number(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    name = value.upper() if value.upper().startswith("SIG") else f"SIG{value.upper()}"
    try:
        number = int(signal.Signals(int(value)) if value.isdecimal() else signal.Signals[name])
    except (KeyError, ValueError):
        raise click.BadParameter(f"{value} is not a signal; name one such as USR1") from None
    if number in (signal.SIGKILL, signal.SIGSTOP):
        raise click.BadParameter(f"{value} can't be caught by a program; name one such as USR1")
    return number


@click.command(
    short_help="Record every allocation of a program into a journal.",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    epilog="""\b
Examples:
  blockyard record -o game.byj -- ./game --level 3
  blockyard record -o fight.byj --after 60 --for 20 -- ./game
  blockyard record -o now.byj --pid 4242 --for 10
  blockyard record -o frames.byj --frame-symbol render_frame -- ./viewer""",
)
@click.option("-o", "--output", type=AnyPath(), default=None, help="The journal to write [default: PROGRAM.byj].")
@click.option("--after", type=Seconds(min=0), metavar="S", help="Begin S seconds after the program's start.")
@click.option("--for", "length", type=Seconds(min=0, min_open=True), metavar="S", help="Stop after S seconds.")
@click.option("--quit", is_flag=True, help="End the program when the S seconds of --for are over.")
@click.option(
    "--signal",
    callback=_signal_number,
    metavar="NAME",
    help="Begin when the program receives this signal, stop at the next one, and so on.",
)
@click.option("--wait", is_flag=True, help="Begin only when the program calls by_journal_start().")
@click.option(
    "--frame-symbol",
    metavar="NAME",
    help="A frame ends at each call of this exported function, in place of the known buffer swaps.",
)
@click.option("--addresses", is_flag=True, help="Keep the program's own addresses, for 'blockyard check'.")
@click.option("--no-stacks", is_flag=True, help="Keep no call stacks.")
@click.option(
    "--stack-depth",
    type=click.IntRange(1, 4096),
    default=None,
    metavar="N",
    help="Keep at most the N calls nearest to an event [default: 64].",
)
@click.option("--verify-stacks", is_flag=True, help="Walk each stack again with libunwind; say what differs. Slow.")
@click.option("--no-names", is_flag=True, help="Leave it to 'blockyard names' to name the calls.")
@click.option(
    "--children",
    metavar="no|NAME",
    help="Of the programs that it starts, record none, or only those whose file has this name.",
)
@click.option("--asleep", "sleeps", is_flag=True, help="Record nothing before 'blockyard record --pid' asks for it.")
@click.option("--pid", type=click.IntRange(1), metavar="N", help="Record process N, which runs already, from now on.")
@click.option("--force", "overwrite", is_flag=True, help="Replace journals that exist.")
@click.argument("command_line", nargs=-1, required=False, metavar="-- PROGRAM [ARGS]...")
def command(
    output: Path | None,
    command_line: tuple[str, ...],
    pid: int | None,
    sleeps: bool,
    no_stacks: bool,
    stack_depth: int | None,
    no_names: bool,
    **given: Any,
) -> None:
    """Record every allocation of PROGRAM, with its frames, into a journal.

    Nothing needs rebuilding: the recorder is preloaded. The program keeps its input, output and exit code (1 when it
    would be 0 but a journal is missing or incomplete); a forked child and each program it executes get journals of
    their own, OUTPUT.PID.byj. With --pid, a program that runs already is recorded from now on, until Ctrl-C or the end
    of --for; it then runs on as if nothing had been.
    """
    if (pid is None) == (not command_line):
        raise UserError("give either a program to start, as in 'blockyard record -- ./game', or --pid of one that runs")
    if pid is not None and (given["quit"] or given["wait"] or given["frame_symbol"] or given["verify_stacks"]):
        raise UserError("--quit, --wait, --frame-symbol and --verify-stacks are for programs that are started")
    if sleeps:
        if pid is not None:
            raise UserError("--asleep is for a program that is started; give it alone")
        if output is not None or no_stacks or no_names or stack_depth is not None or any(given.values()):
            raise UserError("--asleep records nothing yet; give the other options to 'blockyard record --pid'")
        asleep.become(list(command_line))
    starts_later = given["wait"] or given["signal"] is not None
    if given["signal"] is not None and given["wait"]:
        raise UserError("--signal and --wait both say when to begin; give one of them")
    if given["after"] is not None and starts_later:
        raise UserError("--after can't be combined with --wait or --signal: they say when to begin")
    if given["quit"] and (given["length"] is None or starts_later):
        raise UserError(
            "--quit ends the program when the time of --for is over; give --for S, without --wait or --signal"
        )
    if no_stacks and given["verify_stacks"]:
        raise UserError("--no-stacks leaves nothing to verify; drop it or --verify-stacks")
    if no_stacks and stack_depth is not None:
        raise UserError("--no-stacks keeps none of the calls that --stack-depth counts; give one of them")
    if output is not None:
        journal_tool.refuse_standard_output(output)
    request = recording.Request(
        command=list(command_line),
        output=output or Path((Path(command_line[0]).name if pid is None else str(pid)) + ".byj"),
        stack_depth=0 if no_stacks else stack_depth or 64,
        names=not no_names,
        **given,
    )
    outcome = recording.run(request) if pid is None else attaching.run(request, pid)
    for line in recording_summary.describe(outcome):
        click.echo(line, err=True)
    still_recording = any(image.running for image in outcome.summary.images)
    nothing = not still_recording and recording_summary.complete_journals(outcome) == 0
    if outcome.exit_code == 0 and (nothing or recording_summary.incomplete_journals(outcome) > 0):
        sys.exit(1)  # the program did well, the recording did not
    if outcome.was_quit and not nothing and recording_summary.incomplete_journals(outcome) == 0:
        sys.exit(0)  # the program ended as it was told to
    sys.exit(outcome.exit_code)
