"""What the dynamic linker can preload, and into which programs."""

import os
from pathlib import Path

from blockyard import elf
from blockyard.errors import UserError

# A script names its interpreter, which may be a script; the kernel follows as many.
_MOST_INTERPRETERS = 4


def refuse_unfit(program: Path, what: str, otherwise: str) -> None:
    """Raises UserError when `what` ("the recorder") can't be preloaded into `program`, or into the interpreter that its
    first line names; `otherwise` is what is left to a program that is linked statically."""
    seen = program
    for _ in range(_MOST_INTERPRETERS):
        interpreter = elf.script_interpreter(seen)
        if interpreter is None:
            break
        if not interpreter.is_file():
            raise UserError(f"{seen} names {interpreter} as its interpreter, and there is no such file")
        seen = interpreter
    header = elf.read_header(seen)
    if header is None:
        return
    if header.bits != 64:
        raise UserError(
            f"{seen} is a {header.bits}-bit program; {what} is a 64-bit library and can't be loaded into it"
        )
    if not header.is_dynamic:
        raise UserError(
            f"{seen} is linked statically, so nothing can be preloaded into it; link it dynamically, {otherwise}"
        )
    facts = seen.stat()
    if (facts.st_mode & 0o4000 and facts.st_uid != os.geteuid()) or (
        facts.st_mode & 0o2000 and facts.st_gid != os.getegid()
    ):
        raise UserError(
            f"{seen} changes its user or group when it starts, and the system then refuses to preload; take a copy "
            "without the setuid bit"
        )


def is_split(library: Path) -> bool:
    """Whether LD_PRELOAD takes this path for several: it splits at spaces and colons."""
    return any(character in str(library) for character in " :")
