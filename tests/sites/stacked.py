"""Text journals with call stacks, written line by line."""

from pathlib import Path


class Journal:
    """Functions are lists of (name, file, line), innermost inlined one first; a stack is a list of them, root first."""

    def __init__(self) -> None:
        self._lines = ["# blockyard journal text 1", "# module 10000 20000 0 0 abcd1234 /usr/games/libgame.so"]
        self._modules = {"libgame.so": 0}
        self._frames: dict[tuple, int] = {}
        self._nodes: dict[tuple, int] = {}
        self._tags = {"": 0}
        self._ended: list[str] = []

    def line(self, text: str) -> None:
        self._lines.append(text)

    def module(self, path: str) -> str:
        name = path.rsplit("/", 1)[-1]
        self._modules[name] = len(self._modules)
        self.line(f"# module 30000 40000 0 0 - {path}")
        return name

    def frame(self, functions: str | list[tuple[str, str, int]], module: str = "libgame.so") -> int:
        key = (repr(functions), module)
        if key not in self._frames:
            index = self._frames[key] = len(self._frames)
            self.line(f"# address {self._modules[module]} {0x100 + index:x}")
            if functions != "":
                named = [(functions, "", 0)] if isinstance(functions, str) else functions
                for function, file, line in named:
                    self._ended += [f"# function {index} {line} {function}"] + ([f"# file {file}"] if file else [])
        return self._frames[key]

    def stack(self, *frames: str | int | list[tuple[str, str, int]]) -> int:
        parent: int | None = None
        for one in frames:
            key = (parent, one if isinstance(one, int) else self.frame(one))
            if key not in self._nodes:
                self._nodes[key] = len(self._nodes)
                self.line(f"# node {'-' if parent is None else parent} {key[1]}")
            parent = self._nodes[key]
        assert parent is not None
        return parent

    def _details(self, site: int | None, tag: str) -> None:
        if tag not in self._tags:
            self._tags[tag] = len(self._tags)
            self.line(f"# name {tag}")
        if tag:
            self.line(f"# tag {self._tags[tag]}")
        if site is not None:
            self.line(f"# site {site}")

    def allocate(
        self, size: int, address: int, ns: int, site: int | None = None, tag: str = "", thread: int = 1
    ) -> None:
        self._details(site, tag)
        self.line(f"a {size} {address:x} {thread} {ns}")

    def free(self, address: int, ns: int, site: int | None = None, thread: int = 1) -> None:
        self._details(site, "")
        self.line(f"f {address:x} {thread} {ns}")

    def mark(self, ns: int, thread: int = 1) -> None:
        self.line(f"# frame {thread} {ns}")

    def write(self, path: Path) -> Path:
        path.write_text("\n".join(self._lines + self._ended) + "\n")
        return path
