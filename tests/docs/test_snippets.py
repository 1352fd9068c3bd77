"""What the README and the guide show can be pasted: commands run from top to bottom, fragments compile."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pages
import pytest

#: Some pages build programs, all replay.
pytestmark = pytest.mark.timeout(1500)

ROOT = pages.ROOT
#: The README's first block; the guide's pages start where it ends.
BEGIN = 'export PATH="$PWD/.venv/bin:$PATH"\nmkdir -p try && cd try\n'
#: The same commands, fewer runs: that every allocator can be replayed is shown by other tests. A gate can't judge
#: so few and ends with 3 for that reason alone; one that fails is a failure here too. `diff` counts, and the guide's
#: second recording has more.
FEWER_RUNS = """
blockyard() {
  local verb=$1 arguments=() argument
  shift
  for argument in "$@"; do
    [ "$verb $argument" != "replay all" ] || argument=glibc,null
    arguments+=("$argument")
  done
  case "$verb $*" in
    *--repeats* | *--resume* | *--draw*) ;;
    replay* | locality*) arguments=(--repeats 1 "${arguments[@]}") ;;
  esac
  local code=0
  if [ "$verb" = compare ]; then arguments+=(--export-json gates.json); fi
  command blockyard "$verb" "${arguments[@]}" || code=$?
  [ "$verb $code" != "diff 3" ] || return 0
  [ "$verb $code" = "compare 3" ] || return $code
  ! grep -q '"passed": false' gates.json
}
"""
#: What other tests do: these build the whole project again.
ELSEWHERE = re.compile(r"^(?:make\b|.*\bpip install \.\.|.*\bdotnet test\b).*$", re.MULTILINE)


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _with(language: str) -> list:
    """Each fragment of the guide in this language, for pytest."""
    return [
        pytest.param(page, line, text, id=f"{_name(page)}:{line}")
        for page in pages.guide()
        for line, text in pages.blocks(page, language)
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that looks like the checkout, so that what the commands write stays out of it."""
    for entry in ROOT.iterdir():
        if entry.name not in ("try", ".git"):
            (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in pages.guide() if pages.blocks(page, "sh")], ids=_name)
def test_the_commands_of_a_page_work_as_they_stand(checkout: Path, page: Path) -> None:
    script = "".join(
        f"echo '--- {_name(page)}:{line}' >&2\n{ELSEWHERE.sub('true', text)}"
        for line, text in pages.blocks(page, "sh")
        if text != BEGIN
    )
    # Names of the build and the package in the environment would hide what a page leaves out.
    hidden = {"BLOCKYARD_BUILD", "PYTHONPATH"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        ["bash", "-e", "-c", BEGIN + FEWER_RUNS + script],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    last = re.findall(r"^--- (.*)$", done.stderr, re.MULTILINE)[-1:]
    assert done.returncode == 0, f"the block at {last} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"


def test_the_readme_begins_where_the_guide_expects_it() -> None:
    assert pages.blocks(ROOT / "README.md", "sh")[0][1] == BEGIN


@pytest.mark.parametrize("page, line, fragment", _with("cpp"))
def test_a_cpp_fragment_compiles(tmp_path: Path, page: Path, line: int, fragment: str) -> None:
    includes, rest = _split(fragment, page, line)
    before = f"#include <blockyard/blockyard.hpp>\n#include <cstdio>\n{includes}"
    _check(tmp_path, "cpp", before, "[[maybe_unused]] static void fragment()", rest)


@pytest.mark.parametrize("page, line, fragment", _with("c"))
def test_a_c_fragment_compiles(tmp_path: Path, page: Path, line: int, fragment: str) -> None:
    includes, rest = _split(fragment, page, line)
    before = f"#include <blockyard/blockyard.h>\n#include <stdio.h>\n{includes}void fragment(void);\n"
    _check(tmp_path, "c", before, "void fragment(void)", rest)


def _check(folder: Path, language: str, before: str, function: str, rest: str) -> None:
    """Programs, templates and functions stand outside of functions."""
    inside = f"{function} {{\n{rest}}}\n"
    compiled = _compile(folder, language, before + (rest if "int main(" in rest else inside))
    if compiled.returncode != 0 and _compile(folder, language, before + rest).returncode == 0:
        return
    assert compiled.returncode == 0, compiled.stderr


def _split(fragment: str, page: Path, line: int) -> tuple[str, str]:
    """Its includes, and what follows them, which compilers take for lines of the page."""
    lines = fragment.splitlines(keepends=True)
    includes = "".join(one for one in lines if one.startswith("#include"))
    rest = "".join("\n" if one.startswith("#include") else one for one in lines)
    return includes, f'#line {line} "{_name(page)}"\n{rest}'


@pytest.mark.parametrize("page, line, fragment", _with("toml"))
def test_a_toml_fragment_can_be_read(page: Path, line: int, fragment: str) -> None:
    tomllib.loads(fragment)


def _compile(folder: Path, language: str, text: str) -> subprocess.CompletedProcess:
    source = folder / f"fragment.{language}"
    source.write_text(text)
    compiler = ["c++", "-std=c++20"] if language == "cpp" else ["cc", "-std=c11", "-D_GNU_SOURCE"]
    headers = [f"-I{ROOT / product / 'include'}" for product in ("library", "lab")]
    return subprocess.run(
        [*compiler, "-fsyntax-only", *headers, str(source)], capture_output=True, text=True, timeout=120, check=False
    )
