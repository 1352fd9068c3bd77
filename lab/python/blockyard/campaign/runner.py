"""One run: a fresh process, a clean environment, and a sentence when it fails."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from blockyard import native
from blockyard.allocators import Choice
from blockyard.campaign import facts
from blockyard.campaign.facts import RunFacts
from blockyard.campaign.run_options import RunOptions
from blockyard.campaign.schedule import Run
from blockyard.errors import UserError
from blockyard.units import duration

# The only variables that a run inherits; anything else could tune an allocator behind the campaign's back.
_INHERITED = ("PATH", "HOME", "TMPDIR")


@dataclass(frozen=True)
class Request:
    """A run, and what its process needs to know."""

    run: Run
    choice: Choice
    plan: Path
    options: RunOptions


def environment(choice: Choice) -> dict[str, str]:
    """What the run's process gets: nothing of the user's shell but where things lie, and the variant's own knobs."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, "LC_ALL": "C.UTF-8", **choice.environment}


def command_line(request: Request, output: Path) -> list[str]:
    run, choice = request.run, request.choice
    given = {
        "--adapter": choice.adapter,
        "--foreign": choice.foreign,
        "--pace": run.pace if run.pace == "max" else run.pace.removesuffix("x"),
        "--touch": run.touch,
        "--trace": run.traced,
        "--untimed": run.untimed,
        **request.options.arguments(traced=run.traced),
        "--populate": choice.populate,
        "--options": choice.options or None,
        "--journal": run.journal,
        "--allocator": choice.name,
        "--variant": choice.variant or "defaults",
        "--repeat": run.repeat,
        "-o": output,
    }
    return [str(native.path("blockyard-replay")), "run", str(request.plan), *native.arguments(given)]


def run_once(
    request: Request, output: Path, *, limit_s: float, lock: int, tick: Callable[[], None] = lambda: None
) -> RunFacts:
    """Runs it to its end and returns what its `run.json` holds; a failure of any kind becomes such a file as well.

    `tick` is called about once per second. An interrupt ends the process and goes on to the caller.
    """
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    begun = time.monotonic()
    # A process group of its own, so that Ctrl-C reaches only this process, which ends the run in good order.
    process = subprocess.Popen(
        command_line(request, output),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment(request.choice),
        process_group=0,
        pass_fds=(lock,),
    )
    hung = False
    try:
        while True:
            try:
                messages = process.communicate(timeout=1.0)[1]
                break
            except subprocess.TimeoutExpired:
                tick()
                if time.monotonic() - begun > limit_s and not hung:
                    hung = True
                    process.kill()
    except BaseException:
        process.kill()
        process.communicate()
        raise
    written = _written(output)
    if process.returncode == 0 and written is not None and written.ok:
        return written
    if hung or written is None or written.ok or not written.reason:
        reason = (
            f"it made no progress and was stopped after {duration(limit_s * 1e9)}"
            if hung
            else _reason(process.returncode, messages)
        )
        written = _write_failure(request, output, reason, started_at)
    # A failed run keeps its `run.json` and nothing else: half its samples would pass for a whole run's.
    for left in output.iterdir():
        if left.name != facts.RUN:
            left.unlink()
    return written


def _written(output: Path) -> RunFacts | None:
    try:
        return facts.read(output / facts.RUN, RunFacts)
    except (FileNotFoundError, UserError):
        return None


def _reason(code: int, messages: str) -> str:
    lines = [line.strip() for line in messages.splitlines() if line.strip() and not line.startswith("progress ")]
    sentences = [line.removeprefix("blockyard: ") for line in lines if line.startswith("blockyard: ")]
    if code > 0 and sentences:
        return sentences[-1]
    said = f"; its last words: {lines[-1]}" if lines else ""
    if code == -signal.SIGKILL:
        return f"it was killed (SIGKILL), most likely because the machine ran out of memory{said}"
    if code < 0:
        return f"it crashed ({native.signal_name(-code)}){said}"
    if code == 0:
        return f"it ended with exit code 0 but without a result{said}"
    return f"it ended with exit code {code}{said}"


def _write_failure(request: Request, output: Path, reason: str, started_at: str) -> RunFacts:
    run, choice = request.run, request.choice
    fields = {
        "format": 1,
        "status": "failed",
        "reason": reason,
        **{name: getattr(run, name) for name in ("journal", "pace", "touch", "repeat", "untimed")},
        "allocator": choice.name,
        "variant": choice.variant or "defaults",
        "version": choice.version,
        "adapter": str(choice.adapter),
        "threads": request.options.threads,
        "environment": environment(choice),
        "started_at": started_at,
    }
    output.mkdir(parents=True, exist_ok=True)
    (output / facts.RUN).write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    return facts.read(output / facts.RUN, RunFacts)
