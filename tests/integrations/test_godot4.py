"""The GDExtension marks the frames of a host that treats it as Godot 4 does."""

from pathlib import Path

from integration import heard


def test_each_frame_of_the_host_is_marked(tmp_path: Path) -> None:
    godot = heard(tmp_path, "godot4", package="nothing")
    assert [event.kind for event in godot.events].count("frame") == 5
