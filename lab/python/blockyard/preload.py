"""What the dynamic linker can preload, and into which programs."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from blockyard import elf, native
from blockyard.errors import UserError

# Present functions that the libraries which mark frames export themselves: --frame-symbol needs no stub for them.
_KNOWN_FRAME_FUNCTIONS = {
    "SDL_GL_SwapWindow",
    "SDL_RenderPresent",
    "glXSwapBuffers",
    "eglSwapBuffers",
    "vkQueuePresentKHR",
}
# A script names its interpreter, which may be a script; the kernel follows as many.
_MOST_INTERPRETERS = 4
# Where a private folder goes when the path of TMPDIR has a space in it, or leaves no room for a socket's name.
_ELSEWHERE = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))


def refuse_unfit(program: Path, what: str, otherwise: str) -> None:
    """Raises UserError when `what` ("the recorder") can't be preloaded into `program`, or into the interpreter that its
    first line names; `otherwise` is what is left to a program that is linked statically."""
    reason = unfit(program, what, otherwise)
    if reason is not None:
        raise UserError(reason)


def unfit(program: Path, what: str, otherwise: str) -> str | None:
    """The same as a sentence; None where it can be preloaded, or where there is no such file."""
    seen = program
    for _ in range(_MOST_INTERPRETERS):
        try:
            interpreter = elf.script_interpreter(seen)
        except OSError:
            return None
        if interpreter is None:
            break
        if not interpreter.is_file():
            return f"{seen} names {interpreter} as its interpreter, and there is no such file"
        seen = interpreter
    header = elf.read_header(seen)
    if header is None:
        return None
    if header.bits != 64:
        return f"{seen} is a {header.bits}-bit program; {what} is a 64-bit library and can't be loaded into it"
    if header.interpreter is None:
        return f"{seen} is linked statically, so nothing can be preloaded into it; link it dynamically, {otherwise}"
    if "musl" in Path(header.interpreter).name:
        return f"{seen} is linked with musl's C library, and {what} with glibc; link it with glibc, {otherwise}"
    if header.sanitizer is not None:
        return f"{seen} is built with {header.sanitizer}, whose own malloc stands in front of {what}; build it without"
    facts = seen.stat()
    if (facts.st_mode & 0o4000 and facts.st_uid != os.geteuid()) or (
        facts.st_mode & 0o2000 and facts.st_gid != os.getegid()
    ):
        return (
            f"{seen} changes its user or group when it starts, and the system then refuses to preload; take a copy "
            "without the setuid bit"
        )
    return None


def is_split(path: Path) -> bool:
    """Whether LD_PRELOAD takes this path for something else: it splits at spaces and colons, and puts in what stands
    for `$LIB` and its like."""
    return any(character in str(path) for character in " :$")


def in_front(*libraries: Path) -> str:
    """LD_PRELOAD with these. What the user preloads stands behind them: his allocator is what gets recorded."""
    return ":".join([*map(str, libraries), *filter(None, [os.environ.get("LD_PRELOAD")])])


@contextlib.contextmanager
def private_folder(most_bytes: int = os.pathconf("/", "PC_PATH_MAX")) -> Iterator[Path]:
    """A folder whose path LD_PRELOAD takes, for as long as the block runs, in one whose path has at most `most_bytes`.
    Raises UserError when none can be had."""
    places = [Path(tempfile.gettempdir()), *_ELSEWHERE]
    for place in places:
        with contextlib.suppress(OSError):
            # Relative, as TMPDIR may be, it would be another one for a program that changes its folder.
            inside = place.absolute()
            if not is_split(inside) and len(os.fsencode(inside)) <= most_bytes:
                made = tempfile.TemporaryDirectory(prefix="blockyard-", dir=inside, ignore_cleanup_errors=True)
                break
    else:
        raise UserError(
            f"no folder for what is preloaded could be made in {', '.join(map(str, places))}; let TMPDIR name "
            "one that can be written, without spaces and colons in its path"
        )
    with made as folder:
        yield Path(folder)


def linked(library: Path, folder: Path) -> Path:
    """A path that LD_PRELOAD takes: the library's own, or that of a link to it in `folder`."""
    library = library.resolve()
    if not is_split(library):
        return library
    link = folder / library.name
    link.symlink_to(library)
    return link


def frame_symbol(name: str | None, folder: Path) -> tuple[dict[str, str], list[Path]]:
    """What has calls of the function `name` end frames: the variables to set, and what to preload behind the library
    that marks frames. The stub is written into `folder`."""
    if name is None:
        return {}, []
    if not name.isascii() or not 0 < len(name) <= elf.MOST_NAME_BYTES:
        raise UserError(f"--frame-symbol takes the plain name of an exported function, not '{name}'")
    variables = {"BLOCKYARD_FRAME_SYMBOL": name}
    if name in _KNOWN_FRAME_FUNCTIONS:
        return variables, []
    stub = folder / "frame-symbol.so"
    elf.write_frame_stub(native.path("libblockyard-frame-stub.so"), stub, name)
    return variables, [stub]
