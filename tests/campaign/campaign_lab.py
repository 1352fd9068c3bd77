"""A small lab for campaign tests: a stand-in for the native programs that does what a test tells it.

How campaigns are ordered, kept, resumed and joined has nothing to do with what is measured, so most tests here drive a
program that only writes the files of a run. `test_campaign_end_to_end.py` drives the real one.
"""

import json
import subprocess
import sys
from pathlib import Path

import the_command

STAND_IN = Path(__file__).parent / "stand_in.py"


class Lab:
    """A build folder with stand-ins, and the `blockyard` command on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.build = folder / "build"
        self.build.mkdir()
        for program in ("blockyard-replay", "blockyard-probe"):
            script = self.build / program
            script.write_text(f"#!{sys.executable} -S\n{STAND_IN.read_text()}")
            script.chmod(0o755)
        for name in ("glibc", "null"):
            (self.build / f"blockyard-adapter-{name}.so").touch()
        self.behave()

    def behave(self, **what: object) -> None:
        """Tells the stand-in what to do; see stand_in.py."""
        (self.build / "behaviour.json").write_text(json.dumps(what))

    def journal(self, name: str, text: str = "a 16 1000 1 10\nf 1000 1 20\n") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def environment(self, **extra: str) -> dict[str, str]:
        return the_command.environment(BLOCKYARD_BUILD=str(self.build), **extra)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        # A job in the background of a script, or one of nohup, hands on signals that are ignored.
        return subprocess.Popen(
            ["env", "--default-signal=INT,HUP", *the_command.line(*arguments)],
            env=self.environment(),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def blockyard(self, *arguments: object, **extra: str) -> subprocess.CompletedProcess[str]:
        return the_command.blockyard(*arguments, cwd=self.folder, more={"BLOCKYARD_BUILD": str(self.build), **extra})

    def replay(
        self, *arguments: object, output: str = "results", totals: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Timed runs alone unless totals are asked for: half the runs show how they are ordered and kept."""
        bare = "--totals" in arguments or (arguments[0] == "--resume")
        without = () if totals or bare else ("--no-totals",)
        return self.blockyard("replay", *arguments, *without, "-o", self.folder / output)

    def calls(self) -> list[str]:
        """The runs that were started, in order."""
        log = self.build / "calls.log"
        return log.read_text().splitlines() if log.is_file() else []

    def command_lines(self) -> list[str]:
        """What each run was told besides the plan, the allocator and its own number."""
        return (self.build / "options.log").read_text().splitlines()

    def runs(self, output: str = "results") -> set[str]:
        """The runs whose result is in place."""
        root = self.folder / output / "runs"
        return {str(path.parent.relative_to(root)) for path in root.glob("*/*/*/*/run.json")}
