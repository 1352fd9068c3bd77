"""Records an example of integrations/ and says which of its blocks came through the adapter and which did not."""

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from recorded import BUILD, record

from blockyard import native


@dataclass(frozen=True)
class Frame:
    """Where one call of a stack lies: the file name of its module, and its functions, the innermost inlined first."""

    module: str
    functions: tuple[str, ...]


@dataclass
class Event:
    """An allocation, free or mark. Of a realloc there are two, as a block ends and another begins."""

    kind: str  # allocate, free, phase, frame
    size: int
    block: str
    tag: str
    stack: tuple[Frame, ...]  # innermost first


@dataclass
class Heard:
    """What the recorder heard of an example, in order."""

    events: list[Event]
    stdout: str

    def tags(self, paths: str) -> set[str]:
        """Of all tags, those that end as one of `paths` does; of allocations and frees."""
        return {event.tag for event in self.events if _ends(event.tag, paths) and event.kind in ("allocate", "free")}

    def elsewhere(self, library: str, paths: str, within: str | None = None) -> dict[str, int]:
        """Allocations of the library whose tags end otherwise, by the module that called malloc or operator new. They
        are the library's where a module or a function on the stack matches the regular expression. `within`: only
        those below that tag."""
        its = re.compile(library)
        found: Counter[str] = Counter()
        for event in self.events:
            if event.kind != "allocate" or _ends(event.tag, paths) or within not in (None, *event.tag.split("/")):
                continue
            if any(its.search(name) for frame in event.stack for name in (frame.module, *frame.functions)):
                found[next(frame.module for frame in event.stack if not frame.module.startswith("libstdc++"))] += 1
        return dict(found)

    def live(self, paths: str, phase: str | None = None) -> list[int]:
        """Sizes of the blocks with such tags that live when the phase begins, or at the end."""
        live: dict[str, tuple[int, bool]] = {}
        for event in self.events:
            if event.kind == "allocate":
                live[event.block] = event.size, _ends(event.tag, paths)
            elif event.kind == "free":
                live.pop(event.block, None)
            elif event.tag == phase:
                break
        return [size for size, is_its in live.values() if is_its]


def _ends(tag: str, paths: str) -> bool:
    return any(f"/{tag}".endswith(f"/{path}") for path in paths.split())


def heard(folder: Path, name: str, *arguments: str, package: str, **environment: str) -> Heard:
    """Runs integration-NAME under the recorder. `package` is what to install where it was not built."""
    program = next(iter(sorted(BUILD.glob(f"integrations/*/integration-{name}"))), None)
    if program is None:
        pytest.skip(f"NOT TESTED: integrations/{name} was not built; install {package} and build again")
    return listened(folder / f"{name}.byj", program, *arguments, **environment)


def listened(journal: Path, program: Path, *arguments: str, **environment: str) -> Heard:
    """Runs the program under the recorder."""
    done = record(journal, str(program), *arguments, **environment)
    assert "left out" not in done.stderr, done.stderr  # a free of a block that the recorder never saw
    return Heard(events_of(done.output), done.stdout)


def crate_source(folder: Path, name: str, version: str) -> Path:
    """Where Cargo keeps the source of a crate, for the C++ that it carries. It is fetched on the first call."""
    if shutil.which("cargo") is None:
        pytest.skip(f"NOT TESTED: the source that the crate {name} carries; install cargo")
    manifest = '[package]\nname = "source"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "none"\n'
    manifest += f'[dependencies]\n{name} = "={version}"\n'
    (folder / "Cargo.toml").write_text(manifest)
    line = ["cargo", "metadata", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True)
    packages = json.loads(done.stdout)["packages"]
    return next(Path(package["manifest_path"]).parent for package in packages if package["name"] == name)


def events_of(journal: Path) -> list[Event]:
    native.call("blockyard-journal", ["check", journal])
    text = journal.with_suffix(".txt")
    native.call("blockyard-journal", ["convert", journal, "-o", text, "--force"])
    lines = [line.split(" ") for line in text.read_text().splitlines()]
    text.unlink()
    modules = [rest[-1].rsplit("/", 1)[-1] for word, *rest in _notes(lines, "module")]
    functions: dict[int, list[str]] = {}
    for _, frame, _line, *function in _notes(lines, "function"):
        functions.setdefault(int(frame), []).append(" ".join(function))
    frames: list[Frame] = []
    nodes: list[tuple[int, int]] = []
    names, events = [""], []
    tag, site, realloc = "", -1, ""

    def stack(node: int) -> tuple[Frame, ...]:
        found = []
        while node >= 0:
            parent, frame = nodes[node]
            found.append(frames[frame])
            node = parent
        return tuple(found)

    for line in lines:
        match line:
            case ["#", "address", module, _]:
                where = "?" if module == "-" else modules[int(module)]
                frames.append(Frame(where, tuple(functions.get(len(frames), ()))))
            case ["#", "stack-end", *_]:
                frames.append(Frame("?", ()))
            case ["#", "node", parent, frame]:
                nodes.append((-1 if parent == "-" else int(parent), int(frame)))
            case ["#", "name", *rest]:
                names.append(" ".join(rest))
            case ["#", "tag", number]:
                tag = names[int(number)]
            case ["#", "site", node]:
                site = int(node)
            case ["#", "realloc", *_]:
                realloc = "realloc"
            case ["#", "frame", *_]:
                events.append(Event("frame", 0, "", "", ()))
            case ["#", "phase", index, *_]:
                events.append(Event("phase", 0, "", names[int(index)], ()))
            case ["a", size, block, *_]:
                events.append(Event("allocate", int(size), block, tag, stack(site)))
                tag, site, realloc = "", -1, ""
            case ["f", block, *_]:
                events.append(Event("free", 0, block, tag, stack(site)))
                if not realloc:
                    tag, site = "", -1
    return events


def _notes(lines: list[list[str]], word: str) -> list[list[str]]:
    return [line[1:] for line in lines if line[:2] == ["#", word]]
