"""Drives a trial: a warm-up of each contender, then rounds in each of which every contender runs once, in an order
drawn anew."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from blockyard import files
from blockyard.errors import UserError
from blockyard.trial import run
from blockyard.trial.contenders import Contender
from blockyard.trial.run import How, Run

FILE = "trial.json"
MOST_RUNS = 1000


@dataclass
class Trial:
    """What was asked for. The first contender is what the others are compared with."""

    arguments: list[str]
    contenders: list[Contender]
    runs: int
    how: How = field(default_factory=How)
    seed: int = 0
    begun: str = ""

    def order(self, round_: int) -> list[Contender]:
        """Of one round: no contender runs before another more often than chance has it, so what drifts meets all."""
        drawn = list(self.contenders)
        random.Random(f"{self.seed}/{round_}").shuffle(drawn)
        return drawn


@dataclass
class Outcome:
    """The runs of each contender that ended, in their order. `left_out` failed in the warm-up, with the reason."""

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
    _write(trial, folder)
    return _go_on(trial, folder, tell)


def resume(folder: Path, runs: int | None, tell: Tell) -> Outcome:
    """The runs that are not there yet; `runs` asks for more of each."""
    trial = read(folder)
    if runs is not None:
        if runs < trial.runs:
            raise UserError(f"the trial in {folder} has {trial.runs} runs of each; --runs can only add to them")
        trial.runs = runs
        _check(trial)
        _write(trial, folder)
    return _go_on(trial, folder, tell)


def read(folder: Path) -> Trial:
    try:
        fields = json.loads((folder / FILE).read_text(encoding="utf-8"))
        contenders = [Contender(**one) for one in fields.pop("contenders")]
        return Trial(**{**fields, "contenders": contenders, "how": How(**fields["how"])})
    except FileNotFoundError:
        raise UserError(f"there is no trial in {folder}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{folder / FILE} can't be read: it is not what 'blockyard trial' wrote") from None


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
    outcome = Outcome(trial, {one.name: [] for one in trial.contenders})
    rounds = range(1, trial.runs + 1)
    missing = {one.name for one in trial.contenders for each in rounds if not _place(folder, one, each).is_file()}
    try:
        for one in trial.order(0):
            if one.name in missing:
                tell(f"warm-up: {one.name}")
                found = run.run(one, trial.arguments, trial.how)
                if one is trial.contenders[0]:
                    run.refuse_not_started(found, one.name)
                if found.failed is not None:
                    tell(f"{one.name} is left out: {found.failed}")
                    outcome.left_out[one.name] = found.failed
        for each in rounds:
            for one in trial.order(each):
                if one.name in outcome.left_out:
                    continue
                path = _place(folder, one, each)
                found = Run.load(path)
                if found is None:
                    tell(f"run {each} of {trial.runs}: {one.name}")
                    found = run.run(one, trial.arguments, trial.how)
                    found.save(path)
                outcome.runs[one.name].append(found)
    except KeyboardInterrupt:
        outcome.interrupted = True
    return outcome


def succeeded(runs: Sequence[Run]) -> list[Run]:
    return [one for one in runs if one.failed is None]
