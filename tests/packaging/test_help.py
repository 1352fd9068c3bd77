"""`blockyard --help` teaches the command: every verb, what it does, and an example of it."""

import re

import pytest
from the_command import ROOT, blockyard, success


def blockyard_help(*verb: str) -> str:
    return success(blockyard(*verb, "--help")).stdout


def verbs() -> set[str]:
    return {path.stem for path in (ROOT / "lab/python/blockyard/commands").glob("[a-z]*.py")}


def test_help_groups_the_verbs_by_task():
    headings = re.findall(r"^([A-Z][a-z]+):$", blockyard_help(), re.MULTILINE)
    assert headings == ["Options", "Record", "Journals", "Measure", "Read", "Fleet", "Install"]


def test_help_shows_every_verb_with_an_example_below_it():
    shown = dict(re.findall(r"^  ([a-z-]+) +\S.*\n +(\S.*)$", blockyard_help().partition("Record:")[2], re.MULTILINE))
    assert set(shown) == verbs()
    for verb, example in shown.items():
        assert f"blockyard {verb} " in example


def test_help_fits_80_columns_and_ends_with_an_example():
    assert max(map(len, blockyard_help().splitlines())) <= 80
    for verb in verbs():
        text = blockyard_help(verb)
        assert max(map(len, text.splitlines())) <= 80
        assert f"blockyard {verb}" in text.partition("Example")[2], verb


def test_allocators_are_chosen_by_one_option_everywhere():
    takes = {verb for verb in verbs() if "-a, --allocator NAMES" in blockyard_help(verb)}
    assert takes == {"replay", "compare", "report", "locality", "trial"}


def test_json_is_a_flag_everywhere():
    for verb in verbs():
        assert not re.search(r"--json [A-Z]", blockyard_help(verb)), verb


@pytest.mark.parametrize("missing", ["msgspec", "numpy", "rich"])
def test_version_needs_no_package_but_click(missing, tmp_path):
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError(name={missing!r})")
    done = success(blockyard("--version", more={"PYTHONPATH": f"{tmp_path}:{ROOT / 'lab/python'}"}))
    assert "glibc" in done.stdout
    assert done.stderr == ""
