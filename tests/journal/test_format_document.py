"""docs/reference/journal-format.md is right: its worked example is what convert writes, byte for byte, up to FOOT."""

import re
import subprocess
from pathlib import Path

import pytest

from blockyard import native

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "journal-format.md"


def listing(language: str) -> str:
    return re.search(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    (folder / "example.txt").write_text(listing("text"))
    output = folder / "example.byj"
    subprocess.run(
        [native.path("blockyard-journal"), "convert", folder / "example.txt", "-o", output],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return output


def test_the_examples_bytes_are_what_convert_writes(written):
    data = bytearray()
    for line in filter(None, listing("bytes").splitlines()):
        offset, numbers = re.match(r"([0-9a-f]{4})  ((?:[0-9a-f]+ )+) \S", line).groups()
        assert int(offset, 16) == len(data), line
        data += bytes.fromhex(numbers)
    assert written.read_bytes().startswith(data + b"FOOT")


def test_the_example_is_sound(written):
    result = subprocess.run(
        [native.path("blockyard-journal"), "check", written], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
