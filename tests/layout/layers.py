"""Which part of the tree may know of which, and how to find out. Every check takes a root and returns sentences."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

# A component may include itself and these. The first rows are the library, which never includes the lab.
LIBRARY = {
    "base": set(),
    "threads": {"base"},
    "checks": {"base"},
    "pages": {"base"},
    "block": {"base", "checks", "pages", "threads"},
    "heap": {"base", "checks", "pages", "threads"},
    "lifetime": {"base", "checks", "threads", "block", "heap", "pages"},
    "container": {"base", "checks", "threads", "block", "heap", "lifetime", "pages"},
}
LAB = {
    "clock": set(),
    "journal": {"base"},
    "names": {"base", "journal", "unwind"},
    "record": {"base", "clock", "journal", "unwind"},
    "trial": {"base", "record"},
    "budget": {"journal", "sites"},
    "count": set(),
    "live": {"journal", "names", "sites"},
    "unwind": {"base"},
    "replay": {"base", "clock", "journal", "samples"},
    "samples": {"base"},
    "locality": {"base", "clock", "journal", "replay"},
    "sites": {"base", "journal"},
    "advise": {"base", "journal", "sites"},
}
COMPONENTS = LIBRARY | LAB
# Public headers of the lab; all others are the library's.
LAB_HEADERS = {"adapter.h", "journal.h"}

# blockyard.X may import itself and these; what is not named here is a module of its own that all may use.
PACKAGES = {
    "campaign": set(),
    "analysis": {"campaign"},
    "advise": {"campaign", "analysis"},
    "report": {"analysis", "campaign", "advise"},
    "locality": {"report"},
    "trial": {"report", "analysis"},
    "budget": {"campaign"},
    "fleet": {"campaign", "report"},
    "live": set(),
    "commands": {"report", "analysis", "campaign", "locality", "advise", "trial", "budget", "fleet", "live"},
}

# Text that only makes sense on one machine: its folders, the addresses of its mirrors of package registries.
MACHINE_PATHS = re.compile(r"/(?:work|root|home/[a-z]\w*|tmp/w)/|\bartifactory\b|\bindex-url\b|\bregistry\.npmjs\b")
# The operating system is known to folders of its name, and to heap/malloc, which stands in for glibc's own malloc. All
# other code of the library includes headers of the language and the processor only, and of what these or a forward
# declaration give, uses nothing that is the system's.
SYSTEM_FOLDERS = {"linux", "windows", "malloc"}
LANGUAGE_HEADERS = """
    algorithm any array atomic barrier bit bitset cassert ccomplex cctype cerrno cfenv cfloat charconv chrono
    cinttypes climits cmath compare complex concepts cstdarg cstddef cstdint cstdio cstdlib cstring cwchar deque
    exception execution forward_list functional initializer_list iterator limits list map memory memory_resource mutex
    new numbers numeric optional ostream queue random ranges ratio set span stack stdexcept string string_view tuple
    type_traits typeindex typeinfo unordered_map unordered_set utility variant vector version
    assert.h errno.h inttypes.h limits.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h
    arm_neon.h cpuid.h emmintrin.h immintrin.h x86intrin.h valgrind/memcheck.h"""
SYSTEM_USES = re.compile(
    r"\b(?:__linux__|__gnu_linux__|__GLIBC__|_WIN32|_WIN64|__MINGW32__|__APPLE__|__unix__|__ANDROID__"
    r"|pid_t|uid_t|ssize_t|off_t|timespec|rlimit|siginfo_t|sigset_t|pthread_\w+|sem_\w+|STD(?:IN|OUT|ERR)_FILENO"
    r"|SIG[A-Z]{3,}|(?:SYS|MAP|PROT|MADV|CLOCK|CLONE|FUTEX|RLIMIT|RTLD|AT|PR|O|SEGV)_[A-Z0-9]+\w*"
    r"|(?:mmap|munmap|mremap|mprotect|madvise|mincore|mlock|munlock|mlockall|brk|sbrk|syscall|prctl|fork|vfork|clone"
    r"|execve?|kill|tgkill|raise|signal|sigaction|sigaltstack|sigprocmask|alarm|getpid|getppid|gettid|getauxval|sysconf"
    r"|getpagesize|getrlimit|setrlimit|getrusage|clock_\w+|nanosleep|usleep|sleep|gettimeofday|time|localtime|sched_\w+"
    r"|getcpu|dlopen|dlsym|dladdr1?|dlclose|dl_iterate_phdr|backtrace|posix_memalign|memalign|malloc_usable_size|setenv"
    r"|secure_getenv|getrandom|fileno|popen|VirtualAlloc|VirtualFree|GetLastError|LoadLibrary\w*|GetProcAddress)"
    r"(?=\())"
)
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|(?<!include )"(?:\\.|[^"\\\n])*"', re.DOTALL)

_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
_INCLUDED_HEADER = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.MULTILINE)
_CODE = {".c", ".cpp", ".h", ".hpp"}
# Documents hold snippets.
_INCLUDING = _CODE | {".md"}
_MOST_COLUMNS = 120
_LIMITED_WIDTH = _CODE | {".py", ".cs", ".rs", ".js", ".css", ".cmake", ".toml", ".sh", ".txt"}


def files(root: Path) -> list[Path]:
    """What belongs to the tree: what git knows or would add, or every file where there is no git."""
    done = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return sorted(path for path in (root / name for name in done.stdout.splitlines()) if path.is_file())
    outside = {"build", "dist", ".git", ".venv", "demo", "__pycache__"}
    return sorted(
        path for path in root.rglob("*") if path.is_file() and not outside & set(path.relative_to(root).parts)
    )


def include_violations(root: Path) -> list[str]:
    """Native code: every #include from one component into another that it may not know."""
    return [
        f"{path.relative_to(root)} includes {target}: {reason}"
        for path in files(root)
        if path.suffix in _INCLUDING
        for target in _INCLUDE.findall(path.read_text(errors="replace"))
        if (reason := _reason(path.relative_to(root).parts, target))
    ]


def _reason(source: tuple[str, ...], target: str) -> str | None:
    component, _, rest = target.partition("/")
    product = {"library": LIBRARY, "lab": LAB}.get(source[0], {})
    if product and source[1:2] == ("src",) and len(source) > 3:
        own = source[2]
        if own not in product:
            return f"{own} is a component that this test does not know"
        if component in COMPONENTS and component != own and component not in COMPONENTS[own]:
            return f"{own} may include {_list(COMPONENTS[own])} only"
        if own in LIBRARY and component == "blockyard" and rest in LAB_HEADERS:
            return "the library never includes the lab"
    elif source[1:2] == ("include",):
        if component in COMPONENTS:
            return "a public header includes public headers only"
        if source[0] == "library" and component == "blockyard" and rest in LAB_HEADERS:
            return "the library never includes the lab"
    elif _is_consumer(source) and target.startswith("blockyard/detail/"):
        return "detail/ is private: programs include the public headers only"
    elif (source[0] in {"examples", "integrations"} or source[:2] == ("lab", "adapters")) and component in COMPONENTS:
        return f"{source[-2]} use the public headers only"
    return None


def _is_consumer(source: tuple[str, ...]) -> bool:
    """Whether a file shows or plays a program that uses the library: examples, adapters, snippets, packaging tests."""
    return source[0] in {"docs", "examples", "integrations", "README.md"} or source[:2] in {
        ("lab", "adapters"),
        ("tests", "packaging"),
    }


def cycle_violations(root: Path) -> list[str]:
    """Parts of the heap and its pages that include each other in a cycle. A header and its source are one part, and
    so is a source without a header that begins with the name of one: heap_check.cpp would be heap's. And folders
    that do."""
    source = root / "library" / "src"
    folders = (source / "heap", source / "pages")
    paths = [path for path in files(root) if path.suffix in _CODE and any(path.is_relative_to(one) for one in folders)]
    headers = {path.relative_to(source).with_suffix("").as_posix() for path in paths if path.suffix in {".h", ".hpp"}}

    def part(path: Path) -> str:
        own = path.relative_to(source).with_suffix("").as_posix()
        owners = [header for header in headers if own == header or own.startswith(f"{header}_")]
        return own if own in headers or not owners else max(owners, key=len)

    includes: dict[str, set[str]] = {}
    for path in paths:
        targets = {Path(target).with_suffix("").as_posix() for target in _INCLUDE.findall(path.read_text())}
        includes.setdefault(part(path), set()).update(targets & headers)
    result = [f"{' includes '.join(cycle)}: parts include each other in a cycle" for cycle in _cycles(includes)]
    folders_included: dict[str, set[str]] = {}
    for path in paths:
        own = path.relative_to(source).parent.as_posix()
        targets = {Path(target).parent.as_posix() for target in _INCLUDE.findall(path.read_text())}
        folders_included.setdefault(own, set()).update(targets - {own})
    known = set(folders_included)
    folders_included = {own: targets & known for own, targets in folders_included.items()}
    return result + [
        f"{' includes '.join(cycle)}: folders include each other in a cycle" for cycle in _cycles(folders_included)
    ]


def _cycles(includes: dict[str, set[str]]) -> Iterator[list[str]]:
    """One cycle for each part from which the search runs into itself."""
    done: set[str] = set()

    def follow(part: str, way: list[str]) -> Iterator[list[str]]:
        if part in way:
            yield [*way[way.index(part) :], part]
        elif part not in done:
            for target in sorted(includes.get(part, set()) - {part}):
                yield from follow(target, [*way, part])
            done.add(part)

    for part in sorted(includes):
        yield from follow(part, [])


def system_violations(root: Path) -> list[str]:
    """Library code that includes, calls or names what is the operating system's, outside the folders that may."""
    switch = root / "library" / "include" / "blockyard" / "detail" / "visibility.h"
    result = []
    for path in files(root):
        parts = path.relative_to(root).parts
        if path.suffix not in _CODE or path == switch or parts[:2] not in {("library", "include"), ("library", "src")}:
            continue
        if SYSTEM_FOLDERS & set(parts[3:-1]):
            continue
        text = path.read_text(errors="replace")
        included = (target for target in _INCLUDED_HEADER.findall(text) if not target.startswith("blockyard/"))
        found = [f"includes {target}" for target in included if target not in LANGUAGE_HEADERS.split()]
        found += [f"uses {use}" for use in sorted(set(SYSTEM_USES.findall(_NO_CODE.sub(" ", text))))]
        result += [
            f"{path.relative_to(root)} {what}: only linux/, windows/ and malloc/ know the system" for what in found
        ]
    return result


_SYSTEM_MACROS = re.compile(r"\b(?:__linux__|_WIN32|_WIN64|__MINGW32__|__MINGW64__)\b")


def windows_violations(root: Path) -> list[str]:
    """Lab code that asks which system it is on; and of what the recorder shares between systems, sources and headers,
    that know one: what lies in record/ but in no system's folder, and what record/windows compiles of the journal."""
    lab = root / "lab" / "src"
    result = [
        f"{path.relative_to(root)} asks for the system: linux/ and windows/ answer"
        for path in files(root)
        if path.suffix in _CODE and path.is_relative_to(lab) and _SYSTEM_MACROS.search(path.read_text(errors="replace"))
    ]
    recipe = lab / "record" / "windows" / "CMakeLists.txt"
    named = re.findall(r"\$\{journal\}/([\w/]+\.cpp)", recipe.read_text()) if recipe.exists() else []
    pending = [lab / "journal" / name for name in named]
    pending += [path for path in files(root) if path.suffix in _CODE and path.is_relative_to(lab / "record")]
    met: set[Path] = set()
    while pending:
        path = pending.pop()
        if path in met or not path.exists():
            continue
        met.add(path)
        text = path.read_text(errors="replace")
        own = _systems(path.relative_to(lab).as_posix())
        targets = _INCLUDE.findall(text)
        found = [f"includes {target}" for target in targets if _systems(target) - own]
        result += [f"{path.relative_to(root)} {what}, which is another system's" for what in found]
        if own:
            continue
        pending += [lab / target for target in targets]
        found = [f"includes {target}" for target in _INCLUDED_HEADER.findall(text) if target not in _PORTABLE_HEADERS]
        found += [f"uses {use}" for use in sorted(set(SYSTEM_USES.findall(_NO_CODE.sub(" ", text))))]
        result += [f"{path.relative_to(root)} {what}, and is in no system's folder" for what in found]
    return result


def _systems(path: str) -> set[str]:
    return {"linux", "windows"} & set(path.split("/")[1:-1])


_PORTABLE_HEADERS = {*LANGUAGE_HEADERS.split(), "xxhash.h", "ctime", "filesystem", "future", "system_error", "thread"}


def import_violations(root: Path) -> list[str]:
    """Python: every import from one part of the package into another that it may not know."""
    package = root / "lab" / "python" / "blockyard"
    result = []
    for path in files(root):
        if path.suffix != ".py" or not path.is_relative_to(package):
            continue
        parts = path.relative_to(package).parts
        own = parts[0] if len(parts) > 1 else None
        # A module on its own (native, errors, allocators) is below all parts; the command line is above them.
        allowed = PACKAGES[own] | {own} if own in PACKAGES else {"commands"} if parts == ("cli.py",) else set()
        result += [
            f"{path.relative_to(root)} imports blockyard.{target}"
            for target in _imported(path)
            if target in PACKAGES and target not in allowed
        ]
    return result


def _imported(path: Path) -> Iterator[str]:
    """The first word below `blockyard.` of every import, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
        for name in names:
            first, *rest = name.split(".")
            if first == "blockyard" and rest:
                yield rest[0]


def machine_violations(root: Path) -> list[str]:
    """Every line that names a folder of one machine, or a mirror of a package registry."""
    result = []
    for path in files(root):
        if path.is_relative_to(root / "tests" / "layout"):
            continue
        content = path.read_bytes()
        if b"\0" in content[:8192]:
            continue
        for number, line in enumerate(content.decode(errors="replace").splitlines(), start=1):
            if found := MACHINE_PATHS.search(line):
                result.append(f"{path.relative_to(root)}:{number} names {found.group()}")
    return result


def width_violations(root: Path) -> list[str]:
    """Every line of code that is longer than 120 columns."""
    result = []
    for path in files(root):
        if path.suffix not in _LIMITED_WIDTH or "data" in path.parts or "corpus" in path.parts:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            if len(line) > _MOST_COLUMNS:
                result.append(f"{path.relative_to(root)}:{number} has {len(line)} columns")
    return result


def _list(components: set[str]) -> str:
    return ", ".join(sorted(components)) or "no other component"
