"""What the pages name exists: verbs and options, targets of make, functions, settings, files."""

import re
import subprocess
from functools import cache
from pathlib import Path

import click
import pages
import pytest

from blockyard.cli import main as program

ROOT = pages.ROOT
PAGES = pages.written()


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def _tree() -> str:
    """Every source file, as one text, pages left out."""
    return "\n".join(
        path.read_text(errors="replace") for path in _files() if path.suffix != ".md" and path.stat().st_size < 2**20
    )


@cache
def _files() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


@cache
def _words() -> set[str]:
    return set(re.findall(r"\b(?:by|BY|BLOCKYARD)_\w+", _tree()))


def _options(command: click.Command, hidden: bool) -> set[str]:
    options = {"--help", "-h"}
    for parameter in command.params:
        if isinstance(parameter, click.Option) and (hidden or not parameter.hidden):
            options |= {*parameter.opts, *parameter.secondary_opts}
    return options


def _commands(text: str) -> list[list[str]]:
    """Each call of blockyard in this code, as words, up to the end of its line or of what the shell reads as one."""
    text = re.sub(r"\\\n", " ", text)
    calls = re.findall(r"(?:^|[;&|(]|\$) *(?:\w+=\S+ +)*blockyard +((?:-h|--)?[a-z][^\n|;#&)]*)", text, re.MULTILINE)
    return [call.split() for call in calls]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_verb_and_option_of_the_command_exists(page: Path) -> None:
    context = click.Context(program)
    verbs = {name: program.get_command(context, name) for name in program.list_commands(context)}
    wrong = []
    for line, text in pages.code(page):
        for words in _commands(text):
            if words[0] not in verbs:
                if not words[0].startswith("-") and re.fullmatch(r"[a-z]+", words[0]):
                    wrong.append(f"{_name(page)}:{line}: blockyard {words[0]}: no such verb")
                continue
            known = _options(verbs[words[0]], hidden=False)
            for word in words[1:]:
                if word == "--":
                    break
                option = re.match(r"--?[a-z][a-z-]*", word)
                if option and option.group() not in known and option.group()[:2] not in known:
                    wrong.append(f"{_name(page)}:{line}: blockyard {words[0]} {option.group()}: no such option")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_target_of_make_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wrong = [
        f"{_name(page)}:{line}: make {target}: no such target"
        for line, text in pages.code(page, without="yaml")  # there it is your program that is built
        for target in re.findall(r"(?:^|[;&] *)make (?:-C \.\. )?([a-z][a-z0-9-]*)", text, re.MULTILINE)
        if target not in targets
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_function_and_setting_exists(page: Path) -> None:
    wrong = [
        f"{_name(page)}:{line}: {word} is nowhere in the sources"
        for line, text in pages.code(page)
        for word in re.findall(r"\b(?:by|BY|BLOCKYARD)_\w+(?![\w*<{])", text)
        if word not in _words() and not any(known.startswith(word) for known in _words() if word.endswith("_"))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    """In code, as seen from the root of the repository. A path with an upper-case word in it stands for others."""
    folders = "library|lab|docs|tests|bench|scripts|journals|cmake|dotnet|examples"
    # What is installed into try/library lies beside the sources' library.
    installs = "$PWD/library" in page.read_text(encoding="utf-8")
    wrong = [
        f"{_name(page)}:{line}: {path} does not exist"
        for line, text in pages.code(page)
        for path in re.findall(rf"(?<![\w./$\"-])(?:{folders})/[\w./-]+", text)
        if not re.search(r"[A-Z]{2}", path) and not (ROOT / path.rstrip("./")).exists() and not _is_built(path)
        if not (installs and path.startswith("library/"))
    ]
    assert not wrong, "\n".join(wrong)


def _is_built(path: str) -> bool:
    """Whether git leaves it out."""
    return subprocess.run(["git", "-C", ROOT, "check-ignore", "--quiet", f"{path}/any"], check=False).returncode == 0


def test_every_link_of_the_readme_leads_somewhere() -> None:
    """MkDocs checks those of all other pages; the README is not in the site."""
    wrong = []
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", (ROOT / "README.md").read_text()):
        page = ROOT / (target or "README.md")
        if not page.exists():
            wrong.append(target)
        elif anchor:
            headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
            if anchor not in slugs:
                wrong.append(f"{target}#{anchor}")
    assert not wrong


def test_every_page_that_sources_name_exists() -> None:
    wrong = []
    for path in _files():
        if path.suffix in (".md", ".yml", ".byj") or path.parent in (
            ROOT / "tests" / "layout",
            ROOT / "tests" / "docs",
        ):
            continue
        text = path.read_text(errors="replace")
        wrong += [
            f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}: {found.group()} does not exist"
            for found in re.finditer(r"(?<![\w./-])docs/[\w/-]+\.(?:md|png)", text)
            if not (ROOT / found.group()).exists()
        ]
    assert not wrong, "\n".join(wrong)
