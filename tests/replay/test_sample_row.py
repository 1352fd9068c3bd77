"""A row of samples.npy is stated in lab/src/samples/row.hpp; the Python package and the reference say the same."""

import ast
import re
from pathlib import Path

import numpy as np

from blockyard.analysis import causes, passes, samples
from blockyard.campaign import prepare

ROOT = Path(__file__).resolve().parents[2]
HEADER = (ROOT / "lab" / "src" / "samples" / "row.hpp").read_text()
REFERENCE = (ROOT / "docs" / "reference" / "campaign-folder.md").read_text()
SECTION = REFERENCE[REFERENCE.index("\n## samples.npy") : REFERENCE.index("\n## Other arrays")]


def header_row() -> np.dtype:
    """The layout of `struct Row`."""
    members = re.search(r"struct \[\[gnu::packed\]\] Row \{\n(.*?)\n\};", HEADER, re.DOTALL)[1]
    return np.dtype([(name, f"u{int(bits) // 8}") for bits, name in re.findall(r"std::uint(\d+)_t (\w+);", members)])


def header_causes() -> dict[str, int]:
    bits = HEADER[HEADER.index("namespace cause {") :]
    return {name: int(bit) for name, bit in re.findall(r"std::uint8_t (\w+) = (\d+);", bits)}


def test_numpy_reads_what_the_replayer_writes():
    described = "".join(re.findall(r'^ +"(.*)"', HEADER[HEADER.index("row_descr") :], re.MULTILINE))
    assert np.dtype(ast.literal_eval(described)) == header_row()


def test_the_package_reads_the_same_row():
    assert header_row() == passes.ROW
    assert header_row().itemsize == prepare.SAMPLE_BYTES


def test_the_package_knows_the_same_causes():
    assert header_causes() == {
        "looked": samples.LOOKED,
        "fault_in_call": samples.FAULT_CALL,
        "fault_in_touch": samples.FAULT_TOUCH,
        "preempted": samples.PREEMPTED,
        "slept": samples.SLEPT,
        "migrated": samples.MIGRATED,
        "major_fault": samples.MAJOR_FAULT,
        "host_paused": samples.HOST,
    }
    machine = re.search(r"uint8_t machine = ([\w |]+);", HEADER)[1].split(" | ")
    assert sum(header_causes()[name] for name in machine) == causes.MACHINE


def test_the_reference_describes_the_same_row():
    columns = re.findall(r"^\| `(\w+)` \| (u\d) \|", SECTION, re.MULTILINE)
    assert np.dtype(columns) == header_row()
    assert f"{header_row().itemsize} bytes" in SECTION
    bits = [int(bit) for row in re.findall(r"^\| (\d+(?:, \d+)*) \|", SECTION, re.MULTILINE) for bit in row.split(", ")]
    assert bits == sorted(header_causes().values())
