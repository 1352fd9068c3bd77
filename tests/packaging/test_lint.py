"""scripts/run-clang-tidy looks again only at what changed since it was found clean, and never forgets a finding."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "run-clang-tidy"
# Says what it looks at, and finds every file that says BAD.
STAND_IN = """#!/bin/sh
[ "$1" = --version ] && { echo 1; exit; }
for file; do :; done
echo "$file" >> "$SEEN"
! grep -H BAD "$file"
"""


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("scripts", "lab", "bin", "build/clang"):
            (root / folder).mkdir(parents=True)
        shutil.copy(SCRIPT, root / "scripts")
        (root / ".clang-tidy").write_text("Checks: '*'\n")
        (root / "bin/clang-tidy").write_text(STAND_IN)
        (root / "bin/clang-tidy").chmod(0o755)
        (root / "lab/shared.hpp").write_text("int shared();\n")
        for name in ("one", "two"):
            (root / f"lab/{name}.cpp").write_text(f'#include "shared.hpp"\nint {name}() {{ return 1; }}\n')
        commands = [
            {
                "directory": str(root),
                "file": str(root / f"lab/{name}.cpp"),
                "command": f"c++ -o {name}.o -c {root}/lab/{name}.cpp",
            }
            for name in ("one", "two")
        ]
        (root / "build/clang/compile_commands.json").write_text(json.dumps(commands))

    def lint(self) -> tuple[int, str, set[str]]:
        """Exit code, output, and the sources that were looked at."""
        seen = self.root / "seen"
        seen.write_text("")
        environment = os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}", "SEEN": str(seen)}
        done = subprocess.run(
            [self.root / "scripts/run-clang-tidy", "build/clang"],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, {Path(line).stem for line in seen.read_text().split()}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_clean_source_is_looked_at_once(tree: Tree) -> None:
    assert tree.lint()[::2] == (0, {"one", "two"})
    assert tree.lint()[::2] == (0, set())


def test_a_changed_source_is_looked_at_again_alone(tree: Tree) -> None:
    tree.lint()
    with (tree.root / "lab/two.cpp").open("a") as source:
        source.write("// NOLINT\n")
    assert tree.lint()[2] == {"two"}


def test_a_changed_header_or_rule_has_all_that_it_concerns_looked_at_again(tree: Tree) -> None:
    tree.lint()
    (tree.root / "lab/shared.hpp").write_text("int shared(int);\n")
    assert tree.lint()[2] == {"one", "two"}
    (tree.root / ".clang-tidy").write_text("Checks: '-*'\n")
    assert tree.lint()[2] == {"one", "two"}


def test_a_finding_is_told_until_it_is_mended(tree: Tree) -> None:
    source = tree.root / "lab/one.cpp"
    source.write_text("int one() { return 1; }  // BAD\n")
    for _ in range(2):
        code, said, _ = tree.lint()
        assert code == 1
        assert "one.cpp" in said
    source.write_text("int one() { return 1; }\n")
    assert tree.lint()[0] == 0
