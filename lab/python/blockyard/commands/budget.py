"""blockyard budget: a running program held to limits of allocation."""

import dataclasses
import os
import signal
import sys
import tempfile
from pathlib import Path

import click

from blockyard import files, options, recording
from blockyard.budget import judge, limits, tell
from blockyard.errors import UserError
from blockyard.units import listed

EXCEEDED = 3
"""The exit code of a limit that was exceeded or could not be judged, as `compare` has it."""
_EPILOG = """\b
Examples:
  blockyard budget --limits budget.toml -- ./game
  blockyard budget --limit 'thread=audio* allocations=0 per=frame' -- ./game
  blockyard budget --learn budget.toml -- ./game
  blockyard budget --stop --limits budget.toml -- gdb --args ./game
"""


@click.command(
    short_help="Does this code still allocate nothing? Limits for a run.",
    context_settings={"allow_interspersed_args": False},
    epilog=_EPILOG,
)
@click.argument("command_line", nargs=-1, required=True, metavar="-- PROGRAM [ARGS]...")
@click.option("--limits", "path", metavar="FILE", type=options.AnyPath(), help="Limits, as TOML.")
@click.option("--limit", "given", multiple=True, metavar="'KEY=VALUE ...'", help="One more limit, in the file's keys.")
@click.option("--ignore", metavar="FILE", type=options.AnyPath(), help="Sites to leave out, with reasons.")
@click.option("--learn", metavar="FILE", type=options.AnyPath(), help="Write limits that this run keeps to.")
@click.option("--record", "journal", metavar="FILE", type=options.AnyPath(), help="Keep the journal.")
@click.option("--frame-symbol", metavar="NAME", help="Calls of this function end a frame, as 'record' takes it.")
@click.option("--stop", is_flag=True, help="Raise SIGTRAP where a limit is first exceeded, for a debugger.")
@click.option("--again", type=click.IntRange(0, 100), default=0, metavar="N", help="Run N more times; say what recurs.")
@click.option("--warn", is_flag=True, help="Exit with 0 all the same.")
@options.as_json
@click.option(
    "--export-json", "json_path", metavar="FILE", help="Write everything as JSON; '-' prints it, here and below."
)
@click.option("--export-junit", "junit_path", metavar="FILE", help="Write JUnit XML.")
def command(
    command_line: tuple[str, ...],
    path: Path | None,
    given: tuple[str, ...],
    ignore: Path | None,
    learn: Path | None,
    journal: Path | None,
    frame_symbol: str | None,
    stop: bool,
    again: int,
    warn: bool,
    as_json: bool,
    json_path: str | None,
    junit_path: str | None,
) -> None:
    """Run PROGRAM and say which limits of allocation it exceeds: where first, with the call stack, and from where else.

    What the code forbids (by_forbid_begin) counts too. The program is recorded, so counts are exact. Exits with 0; with
    3 when a limit was exceeded or could not be judged; with 1 when the program failed. With GITHUB_ACTIONS in the
    environment, violations are annotations, too.
    """
    wanted = [*(limits.read(path) if path else []), *(one for text in given for one in limits.parse(text))]
    judging = {
        "--stop": stop,
        "--again": again,
        "--limits": path,
        "--limit": given,
        "--warn": warn,
        "--json": as_json,
        "--export-json": json_path,
        "--export-junit": junit_path,
    }
    useless = [name for name, value in judging.items() if value]
    if learn is not None and useless:
        raise UserError(f"--learn writes limits and judges none; leave {listed(useless)} out")
    files.check_outputs(
        files.STANDARD_OUTPUT if as_json else None, json_path, junit_path, None if learn is None else str(learn)
    )
    rules = judge.read_rules(ignore)
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        request = recording.Request(
            list(command_line),
            journal or Path(folder) / "budget.byj",
            frame_symbol=frame_symbol,
            stop_at=limits.watched(wanted) if stop else None,
        )
        outcome = recording.run(request)
        place, child = judge.journal_of(outcome)
        for note in outcome.notes:
            click.echo(note, err=True)
        program = Path(command_line[0]).name
        stopped = stop and outcome.exit_code == 128 + signal.SIGTRAP
        if learn is None:
            found = judge.judge(place, program, child, wanted, rules, cut=stop)
            if not found.verdicts:
                raise UserError(
                    "there is no limit: give --limits FILE or --limit, or --learn FILE to write some; and the code of "
                    f"{program} forbids nothing by itself"
                )
            for number in range(again if outcome.exit_code == 0 else 0):
                more = recording.run(dataclasses.replace(request, output=Path(folder) / f"again-{number}.byj"))
                place_again, _ = judge.journal_of(more)
                found.add(judge.judge(place_again, program, child, wanted, rules))
            _show(found, as_json, json_path, junit_path)
        elif outcome.exit_code == 0:
            looked = limits.to_learn(judge.judge(place, program, child, [], rules).frames > 0)
            found = judge.judge(place, program, child, looked, rules)
            files.whole_text(learn, limits.learned(looked, [one.facts.worst for one in found.verdicts]))
            click.echo(f"{len(looked)} limits are in {learn}; hold the program to them with --limits {learn}")
    if journal is not None:
        click.echo(f"next: blockyard sites {place}", err=True)
    if stopped:
        click.echo(f"{program} was stopped by SIGTRAP there; '-- gdb --args {program}' stops in a debugger", err=True)
    elif outcome.exit_code != 0:
        raise UserError(f"{program} itself ended with exit code {outcome.exit_code}")
    if learn is None and not warn and not all(one.passed for one in found.verdicts):
        sys.exit(EXCEEDED)


def _show(found: judge.Judgement, as_json: bool, json_path: str | None, junit_path: str | None) -> None:
    if as_json:
        click.echo(tell.as_json(found), nl=False)
    if files.exported(as_json, (json_path, lambda: tell.as_json(found)), (junit_path, lambda: tell.as_junit(found))):
        return
    for line in tell.lines(found):
        click.echo(line)
    for line in tell.annotations(found) if os.environ.get("GITHUB_ACTIONS") == "true" else ():
        click.echo(line)
