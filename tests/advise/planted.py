"""The scene of planted.cpp, recorded, and what is right for each of its sites."""

import os
import subprocess
from pathlib import Path

import the_command
from the_command import ROOT

BUILD = Path(os.environ.get("BLOCKYARD_BUILD") or ROOT / "build" / "release")

#: By advice: the functions whose blocks it suits without exception.
RIGHT = {
    "temp": ["visible_nodes", "draw_label"],
    "temp_scope": ["find_path", "filter_voices", "resample"],
    "temp_job": ["decode_samples", "meter_levels"],
    "pool": ["new_component"],
    "rewindable": ["load_level"],
    "reserve": ["record_input", "collect_visible"],
    "keep": ["draw_interface"],
    "leave": ["load_settings", "cache_asset"],
}
#: By advice: the functions of which a few blocks break it, and how many blocks those are.
ALMOST = {
    "temp": {"queue_event": 2, "voice_command": 4500, "build_mesh": 1},
    "temp_scope": {"run_script": 9},
    "temp_job": {"stream_chunk": 1},
    "rewindable": {"load_textures": 3},
    "keep": {"draw_map": 1},
}


def blockyard(*arguments: object) -> subprocess.CompletedProcess[str]:
    return the_command.blockyard(*arguments, columns=120, more={"BLOCKYARD_BUILD": str(BUILD)})


def record(journal: Path) -> Path:
    program = BUILD / "tests" / "advise" / "advise-planted"
    assert program.is_file(), f"{program} is missing: build with BLOCKYARD_TESTS=ON"
    the_command.success(blockyard("record", "-o", journal, "--", program))
    return journal
