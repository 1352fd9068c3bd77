"""The README's commands work as they stand, pasted from top to bottom into one shell."""

import os
import re
import subprocess
from pathlib import Path

import pytest

#: Each builds the whole project anew.
pytestmark = pytest.mark.timeout(1500)

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
HEADINGS = re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
#: The first builds a wheel and fills an environment of its own with it: test_wheel.py does that. The second is part of
#: `make test` anyway.
ELSEWHERE = ("Install the command elsewhere", "Use it from C#")
BLOCKS = [
    (heading, block) for heading, body in HEADINGS if heading not in ELSEWHERE for block in SHELL_BLOCK.findall(body)
]


def shortened(commands: str) -> str:
    """The same commands, fewer runs: that each allocator can be replayed is shown by other tests."""
    measuring = re.compile(r"^(blockyard (?:replay (?!--resume)|locality).*?)( +#.*)?$", re.MULTILINE)
    commands = measuring.sub(r"\1 --repeats 1", commands)
    return commands.replace("-a all ", "-a glibc,null ")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the checkout, so that what the commands write stays out of it."""
    folder = tmp_path_factory.mktemp("checkout")
    for entry in ROOT.iterdir():
        if entry.name not in ("try", ".git"):
            (folder / entry.name).symlink_to(entry)
    begin = SHELL_BLOCK.findall(README)[0]
    assert "cd try" in begin
    (folder / "begin").write_text(begin)
    return folder


def paste(checkout: Path, commands: str) -> subprocess.CompletedProcess:
    # Names of the build and the package in the environment would hide what the README leaves out.
    hidden = {"BLOCKYARD_BUILD", "PYTHONPATH"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        ["bash", "-e", "-c", f"source begin\n{commands}"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


# In the order of the file: each block may use what those before it wrote.
@pytest.mark.parametrize("heading, commands", BLOCKS, ids=[heading for heading, _ in BLOCKS])
def test_the_commands_of_a_heading_work_as_they_stand(checkout: Path, heading: str, commands: str) -> None:
    done = paste(checkout, shortened(commands))
    # On a busy machine one run of each says little, and the gate may say so.
    expected = {0, 3} if "--gate" in commands else {0}
    assert done.returncode in expected, f"{commands}\n{done.stdout}\n{done.stderr}"
