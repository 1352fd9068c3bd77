"""What a trial compares: allocators that can be preloaded, settings in the environment, builds of the program."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blockyard import allocators, native, preload
from blockyard.allocators import LIBRARY_VARIABLE, Choice
from blockyard.errors import UserError

UNCHANGED = "unchanged"
"""The program as it is, where no allocator was named to compare with."""
_GROUPS = ("all", "defaults", "prefaulted")
# What stands in front of malloc, where that is another library than the one that a replay drives.
_PRELOADED = {"blockyard": "libblockyard-malloc.so", "tbbmalloc": "libtbbmalloc_proxy.so.2"}
_NAME = re.compile(r"[A-Za-z0-9_.+@-]+")
# Prints which loaded object malloc comes from.
_WHOSE_MALLOC = """
import ctypes
Info = type("Info", (ctypes.Structure,), {"_fields_": [("name", ctypes.c_char_p), ("rest", ctypes.c_void_p * 3)]})
everything, info = ctypes.CDLL(None), Info()
everything.dladdr(ctypes.cast(everything.malloc, ctypes.c_void_p), ctypes.byref(info))
print(info.name)
"""


@dataclass(frozen=True)
class Contender:
    """`program` takes the place of the command's first word; `library` is preloaded, None: nothing is."""

    name: str
    program: str
    library: str | None = None
    environment: dict[str, str] = field(default_factory=dict)


def of(program: str, named: Sequence[str], settings: Sequence[str], builds: Sequence[str]) -> list[Contender]:
    """Those of -a, then of --with, then of --build, in the order given: the first is what the others are compared with.
    Raises UserError for one that can't be had, except among `all`."""
    found = [_of_choice(choice, program, named) for choice in allocators.resolve(named)] if named else []
    contenders = [one for one in found if one is not None] or [Contender(UNCHANGED, program)]
    contenders += [_with_settings(text, program) for text in settings]
    contenders += [_build(text) for text in builds]
    names = [one.name for one in contenders]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"two contenders are called '{name}': rename one of them")
    for one in contenders:
        _refuse_unfit(one)
    return contenders


def _of_choice(choice: Choice, program: str, named: Sequence[str]) -> Contender | None:
    """None where `all` asked for it and it can't be preloaded."""
    library, reason = _library(choice)
    if reason is None:
        return Contender(choice.name, program, library)
    if choice.name in {word.strip().partition("=")[0] for text in named for word in text.split(",")}:
        raise UserError(f"{choice.name} can't be preloaded into a program: {reason}")
    return None


def _library(choice: Choice) -> tuple[str | None, str | None]:
    """What to preload for it, or the reason why that can't be."""
    if choice.missing is not None:
        return None, choice.missing
    if choice.populate:
        return None, "only a replay can populate its memory beforehand"
    if choice.base == "glibc":
        return None, None
    if choice.base in _PRELOADED:
        found = native.find(_PRELOADED[choice.base])
        library = str(found.absolute()) if found else _PRELOADED[choice.base]
    else:
        library = str(choice.foreign) if choice.foreign else choice.environment.get(LIBRARY_VARIABLE, "")
    if not library:
        return None, "it is inside its adapter and no library of its own"
    return library, _why_no_malloc(library)


def _why_no_malloc(library: str) -> str | None:
    def whose(preloaded: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LD_PRELOAD": preloaded}
        return subprocess.run(
            [sys.executable, "-S", "-c", _WHOSE_MALLOC], env=environment, capture_output=True, text=True, check=False
        )

    with preload.private_folder() as folder:
        path = str(preload.linked(Path(library), folder)) if "/" in library else library
        found = whose(path)
    if "cannot be preloaded" in found.stderr:
        return f"the loader does not find {library}, or it is not for this processor"
    # One that crashes is tried all the same: that is what the trial then says.
    if found.returncode == 0 and found.stdout == whose("").stdout:
        return f"{library} exports no malloc"
    return None


def _with_settings(text: str, program: str) -> Contender:
    """`NAME=SETTINGS`, where NAME may be `ALLOCATOR@WORD`: those settings beside that allocator."""
    name, settings = _named(text, "--with", "'VARIABLE=VALUE ...'")
    base, at, _ = name.partition("@")
    library = None
    if at:
        library, reason = _library(allocators.resolve([base])[0])
        if reason is not None:
            raise UserError(f"{base} can't be preloaded into a program: {reason}")
    environment = {}
    try:
        words = shlex.split(settings)
    except ValueError:
        raise UserError(f"--with {name}: a quotation mark or backslash in '{settings}' is left open") from None
    for setting in words:
        variable, equals, value = setting.partition("=")
        if not equals or not variable:
            raise UserError(f"--with {name}: '{setting}' is not a setting; write VARIABLE=VALUE")
        environment[variable] = value
    return Contender(name, program, library, environment)


def _build(text: str) -> Contender:
    name, program = _named(text, "--build", "./program")
    return Contender(name, program)


def _named(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not equals or not _NAME.fullmatch(name) or name in (*_GROUPS, ".", ".."):
        raise UserError(f"{option} takes NAME={form}, with a name of letters, digits and '_.+@-', not '{text}'")
    return name, rest


def _refuse_unfit(one: Contender) -> None:
    found = shutil.which(one.program)
    if found is None:
        raise UserError(f"{one.program} is not a program that can be run; check the name and its permissions")
    preload.refuse_unfit(Path(found), "what marks its frames", "or measure it without Blockyard")
