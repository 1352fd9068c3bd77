"""Drives a trial: a warm-up of each contender, then rounds in each of which every contender runs once, in an order
drawn anew."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from blockyard import files
from blockyard.errors import UserError
from blockyard.trial import run
from blockyard.trial.contenders import Contender
from blockyard.trial.run import How, Run

FILE = "trial.json"
MOST_RUNS = 1000


@dataclass
class Trial:
    """What was asked for. The first contender is what the others are compared with. `directory` is where the program
    runs; `sha256` is of each program and library, by its path."""

    arguments: list[str]
    contenders: list[Contender]
    runs: int
    how: How = field(default_factory=How)
    seed: int = 0
    begun: str = ""
    directory: str = ""
    sha256: dict[str, str] = field(default_factory=dict)

    def order(self, round_: int) -> list[Contender]:
        """Of one round: no contender runs before another more often than chance has it, so what drifts meets all."""
        drawn = list(self.contenders)
        random.Random(f"{self.seed}/{round_}").shuffle(drawn)
        return drawn


@dataclass
class Outcome:
    """The runs of each contender that ended, in their order. `left_out` failed in the warm-up, with the reason, and got
    no new runs."""

    trial: Trial
    runs: dict[str, list[Run]]
    left_out: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def ended(self) -> int:
        return sum(map(len, self.runs.values()))


Tell = Callable[[str], None]


def start(trial: Trial, folder: Path, tell: Tell) -> Outcome:
    """Into `folder`, which must be new or empty."""
    _check(trial)
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty; go on with a trial by --resume, or choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    trial.seed = random.SystemRandom().randrange(1 << 32)
    trial.begun = datetime.now(UTC).isoformat(timespec="seconds")
    trial.directory = str(Path.cwd())
    trial.sha256 = {str(path): files.sha256(path) for path in _measured(trial)}
    _write(trial, folder)
    return _go_on(trial, folder, tell)


def resume(folder: Path, runs: int | None, tell: Tell) -> Outcome:
    """The runs that are not there yet; `runs` asks for more of each."""
    trial = read(folder)
    _refuse_another(trial, folder)
    if runs is not None:
        if runs < trial.runs:
            raise UserError(f"the trial in {folder} has {trial.runs} runs of each; --runs can only add to them")
        trial.runs = runs
        _check(trial)
        _write(trial, folder)
    return _go_on(trial, folder, tell)


def read(folder: Path) -> Trial:
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Trial)
    except FileNotFoundError:
        raise UserError(f"there is no trial in {folder}") from None
    except msgspec.DecodeError:
        raise UserError(f"{folder / FILE} can't be read: it is not what 'blockyard trial' wrote") from None


def _measured(trial: Trial) -> set[Path]:
    """The files of its programs and libraries; the loader knows where one without a folder is."""
    found = {one.library for one in trial.contenders if one.library is not None and "/" in one.library}
    return {Path(name) for name in found | {shutil.which(one.program) for one in trial.contenders} if name is not None}


def _refuse_another(trial: Trial, folder: Path) -> None:
    """Runs of a program that changed meanwhile are none of this trial."""
    if trial.directory != str(Path.cwd()):
        raise UserError(f"the trial in {folder} began in {trial.directory}; go on with it there")
    for path in map(Path, trial.sha256):
        if path not in _measured(trial) or files.sha256(path) != trial.sha256[str(path)]:
            raise UserError(f"{path} has changed since the trial in {folder} began; try it in another folder")


def _check(trial: Trial) -> None:
    if not 1 <= trial.runs <= MOST_RUNS:
        raise UserError(f"{trial.runs} runs can't be made; ask for 1 to {MOST_RUNS:,}")
    if len(trial.contenders) < 2:
        raise UserError("there is nothing to compare with; name two allocators, or add --with or --build")


def _write(trial: Trial, folder: Path) -> None:
    files.whole_text(folder / FILE, json.dumps(asdict(trial), indent=2) + "\n")


def _place(folder: Path, one: Contender, round_: int) -> Path:
    return folder / "runs" / one.name / f"{round_}.npz"


def _go_on(trial: Trial, folder: Path, tell: Tell) -> Outcome:
    rounds = range(1, trial.runs + 1)
    # Before anything runs: what fails or is interrupted from here on hides none of them.
    ended = {
        one.name: {each: found for each in rounds if (found := Run.load(_place(folder, one, each)))}
        for one in trial.contenders
    }
    outcome = Outcome(trial, {})
    try:
        for one in trial.order(0):
            if len(ended[one.name]) < trial.runs:
                tell(f"warm-up: {one.name}")
                found = run.run(one, trial.arguments, trial.how)
                if one is trial.contenders[0]:
                    run.refuse_not_started(found, one.name)
                if found.failed is not None:
                    tell(f"{one.name} is left out: {found.failed}")
                    outcome.left_out[one.name] = found.failed
        for each in rounds:
            for one in trial.order(each):
                if one.name in outcome.left_out or each in ended[one.name]:
                    continue
                tell(f"run {each} of {trial.runs}: {one.name}")
                found = run.run(one, trial.arguments, trial.how)
                found.save(_place(folder, one, each))
                ended[one.name][each] = found
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.runs = {name: [own[each] for each in sorted(own)] for name, own in ended.items()}
    return outcome


def succeeded(runs: Sequence[Run]) -> list[Run]:
    return [one for one in runs if one.failed is None]
