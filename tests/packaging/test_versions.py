"""Every package's version is that of the newest release in CHANGELOG.md."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Where a version stands. pyproject.toml takes it from the Python package.
PLACES = {
    "CMakeLists.txt": r"project\(blockyard VERSION ([\d.]+)",
    "library/CMakeLists.txt": r"project\(blockyard-library VERSION ([\d.]+)",
    "CITATION.cff": r"(?m)^version: ([\d.]+)$",
    "dotnet/projects/Directory.Build.props": r"<Version>([\d.]+)</Version>",
    "dotnet/com.blockyard/package.json": r'"version": "([\d.]+)"',
    "dotnet/com.blockyard/CHANGELOG.md": r"(?m)^## ([\d.]+)",
    "integrations/rust/Cargo.toml": r'(?m)^version = "([\d.]+)"',
    "lab/python/blockyard/__init__.py": r'__version__ = "([\d.]+)"',
    "packaging/conan/conanfile.py": r'(?m)^    version = "([\d.]+)"',
    "packaging/debian/changelog": r"^blockyard \(([\d.]+)\)",
    "packaging/vcpkg/blockyard/vcpkg.json": r'"version": "([\d.]+)"',
}


def version_in(path: str, pattern: str) -> str:
    found = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"))
    assert found, f"{path} has no version"
    return found[1]


def newest_release() -> str:
    """The first numbered heading. Before the first release it is the version that is being made, as CMake has it."""
    found = re.search(r"(?m)^## \[?v?(\d[\d.]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    return found[1] if found else version_in("CMakeLists.txt", PLACES["CMakeLists.txt"])


@pytest.mark.parametrize("path", PLACES)
def test_a_package_has_the_version_of_the_changelog(path: str) -> None:
    assert version_in(path, PLACES[path]) == newest_release(), path


def test_the_wheel_takes_its_version_from_the_python_package() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in settings and 'input = "lab/python/blockyard/__init__.py"' in settings
