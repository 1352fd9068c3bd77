"""Where the native programs, libraries and adapters lie, and how to call them."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from blockyard.errors import UserError

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[2]
_Kind = TypeVar("_Kind")


def checkout() -> Path | None:
    """The source tree, when this package runs out of one."""
    return _CHECKOUT if (_CHECKOUT / "CMakeLists.txt").is_file() and (_CHECKOUT / "lab").is_dir() else None


def _folders() -> list[Path]:
    override = os.environ.get("BLOCKYARD_BUILD")
    if override:
        return [Path(override)]
    folders = [_PACKAGE / "native"]
    if checkout():
        folders.append(_CHECKOUT / "build" / "release")
    return folders


def find(name: str) -> Path | None:
    """The native file called `name`, or None when it was not built."""
    for folder in _folders():
        # A wheel is flat; a build tree has one folder per component.
        for candidate in [
            folder / name,
            folder / "library" / name,
            *folder.glob(f"*/src/*/{name}"),
            *folder.glob(f"library/src/*/*/{name}"),
            *folder.glob(f"lab/adapters/**/{name}"),
        ]:
            if candidate.is_file():
                return candidate
    return None


def data(name: str, below: str) -> Path:
    """A file of the sources that the native parts share with us: the wheel's, or below `lab/` of the checkout."""
    packaged = _PACKAGE / "native" / name
    if packaged.is_file():
        return packaged
    if checkout() is None:
        raise UserError(f"this installation lacks {name}; install the blockyard wheel again")
    return _CHECKOUT / "lab" / below / name


def folder(name: str) -> Path | None:
    """The folder of built files called `name`, or None when it was not built."""
    return next((place / name for place in _folders() if (place / name).is_dir()), None)


def path(name: str) -> Path:
    found = find(name)
    if found is None:
        raise UserError(f"{name} was not found; build it with 'make build', or install the wheel that carries it")
    return found


def arguments(given: Mapping[str, Any]) -> list[str]:
    """Options as a native program takes them, by their own names or by those of parameters (`join_realloc`, `from_`):
    each with its value, or once with each of several; a switch that is on by itself. What is None or off is left out.
    """
    found: list[str] = []
    for name, value in given.items():
        option = name if name.startswith("-") else f"--{name.rstrip('_').replace('_', '-')}"
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None and one is not False:
                found += [option] if one is True else [option, str(one)]
    return found


def call(
    program: str,
    arguments: Sequence[str | os.PathLike],
    *,
    env: dict[str, str] | None = None,
    on_progress: Callable[[float, str], None] | None = None,
) -> str:
    """Runs a native program to its end and returns its standard output.

    Its lines `progress FRACTION TEXT` go to `on_progress`; its one-sentence errors become a UserError.
    """
    command = [str(path(program)), *map(str, arguments)]
    if on_progress is not None:
        command.append("--progress")
    # What the shell left open stays open: `blockyard info <(zcat ...)` names /dev/fd/63.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=env, close_fds=False
    )
    messages: list[str] = []

    def drain() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("progress ") and on_progress is not None:
                _, fraction, *text = line.rstrip("\n").split(" ", 2)
                on_progress(float(fraction), text[0] if text else "")
            else:
                messages.append(line.rstrip("\n"))

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    assert process.stdout is not None
    try:
        output = process.stdout.read()
        process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    reader.join()
    if process.returncode != 0:
        raise UserError(sentence(program, process.returncode, messages))
    return output


def decoded(program: str, text: str, kind: type[_Kind]) -> _Kind:
    """What a native program printed as JSON. Members that `kind` does not have are left out."""
    import msgspec  # only here: `blockyard --version` works without it

    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise UserError(f"{program} said nothing usable ({error}); is it of this version?") from None


def sentence(program: str, code: int, messages: list[str]) -> str:
    """One sentence for a native program that failed: its own, or what the exit code says."""
    for message in reversed(messages):
        if message.startswith("blockyard: "):
            return message.removeprefix("blockyard: ")
    if code < 0:
        return f"{program} was ended by {signal_name(-code)}"
    detail = f": {messages[-1]}" if messages else ""
    return f"{program} failed with exit code {code}{detail}"


def signal_name(number: int) -> str:
    """`SIGSEGV`; `signal 35` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
