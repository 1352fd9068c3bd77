"""scripts/newer-peers lists every allocator that comes from a registry, and says which has a newer version there."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace

import pytest

LOADER = SourceFileLoader("newer_peers", str(Path(__file__).parents[2] / "scripts" / "newer-peers"))
SCRIPT = module_from_spec(spec_from_loader("newer_peers", LOADER))
LOADER.exec_module(SCRIPT)
SAID = {
    "cargo": "rpmalloc-sys #allocator\nversion: 0.2.3+b097fd0 (latest 0.3.0)\nlicense: MIT\n",
    "cargo, newest": "rlsf\nversion: 0.2.3+carried\n",
    "apt-cache": "libjemalloc2:\n  Installed: 5.3.0-1\n  Candidate: 5.3.1-1\n",
    sys.executable: "cmeel-mimalloc (3.4.4)\nAvailable versions: 3.4.4, 3.4.3\n",
}


def test_every_allocator_of_a_registry_is_listed_with_what_is_pinned():
    found = {(name, registry): version for name, registry, _, version in SCRIPT.peers()}
    crates = ("rpmalloc", "snmalloc", "jemalloc", "google-tcmalloc")
    assert found.keys() >= {*((name, "cargo") for name in crates), ("mimalloc", "pip"), ("jemalloc", "apt")}
    assert all(version for (_, registry), version in found.items() if registry != "apt")


@pytest.mark.parametrize(
    "registry, program, expected",
    [
        ("cargo", "cargo", ("", "0.3.0")),
        ("cargo", "cargo, newest", ("", "0.2.3+carried")),
        ("apt", "apt-cache", ("5.3.0-1", "5.3.1-1")),
        ("pip", sys.executable, ("", "3.4.4")),
        ("pip", "nothing", ("", "")),
    ],
)
def test_each_registrys_words_are_understood(monkeypatch, registry, program, expected):
    monkeypatch.setattr(SCRIPT.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=SAID.get(program, "")))
    assert SCRIPT.newest(registry, "any") == expected


@pytest.mark.parametrize("latest, code", [("1.0+what", 0), ("1.1", 1), ("", 2)])
def test_the_exit_code_says_whether_there_is_a_newer_one(monkeypatch, capsys, latest, code):
    monkeypatch.setattr(SCRIPT, "peers", lambda: iter([("tlsf", "cargo", "rlsf", "1.0")]))
    monkeypatch.setattr(SCRIPT, "newest", lambda *_: ("", latest))
    assert SCRIPT.main() == code
    assert ("newer" in capsys.readouterr().out.splitlines()[-1]) == (code == 1)
