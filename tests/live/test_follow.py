"""What blockyard-follow says of a journal while it grows, beside what is in it."""

from pathlib import Path

import pytest
import the_command
from growing import JOURNAL, Frame, Growing, Heard, Line, Stacks

from blockyard.errors import UserError
from blockyard.live.follower import Follower

ONLY_THE_LAST = 3600.0  # seconds between two lines


@pytest.fixture
def growing(tmp_path):
    one = Growing(tmp_path / "growing.byj")
    yield one
    one.end()


@pytest.fixture
def heard(request):
    followers = []

    def hear(path, every_s=1.0):
        followers.append(Heard(path, every_s))
        return followers[-1]

    yield hear
    for one in followers:
        one.follower.close()


def sites_of_the_journal():
    sites = the_command.told("sites", JOURNAL, "--limit", "5")["sites"]
    return [(one["module"], one["allocations"], one["bytes"]) for one in sites]


def left_since(ns: int, text: Path) -> tuple[int, int]:
    """Blocks and bytes that were allocated from then on and live at the end, by the journal's text."""
    the_command.success(the_command.blockyard("convert", JOURNAL, "-o", text))
    live = {}
    with text.open() as lines:
        for line in lines:
            match line.split():
                case ["a", size, address, _, at]:
                    live[address] = int(size) if int(at) >= ns else None
                case ["f", address, *_]:
                    del live[address]
    left = [size for size in live.values() if size is not None]
    return len(left), sum(left)


def test_a_whole_journal_is_said_as_sites_says_it(heard):
    line = heard(JOURNAL, ONLY_THE_LAST).until(Line, lambda said: said.ended)
    info = the_command.told("info", JOURNAL)
    assert line.events == info["events"]
    # Where the module lies on this machine, its functions have got names.
    assert [(one.module, one.allocations, one.bytes) for one in line.sites[:5]] == sites_of_the_journal()
    assert line.frames.marked
    assert line.frames.count == len(line.frames.ns)
    assert line.live.blocks == sum(one.live.blocks for one in line.tags) or not line.tags


def test_each_whole_section_is_read_and_a_torn_one_waits_for_its_rest(growing, heard):
    hearer = heard(growing.path)
    growing.write_until(growing.blocks[1][1] + 100)
    third = growing.blocks[2][0]
    line = hearer.until(Line, lambda said: said.events == third)
    assert not line.ended
    assert not line.damage
    growing.write_until(growing.blocks[2][1])
    assert not hearer.until(Line, lambda said: said.events == growing.blocks[3][0]).ended
    growing.write_until(len(growing.whole))
    assert hearer.until(Line, lambda said: said.ended).events > growing.blocks[-1][0]


def test_a_journal_without_a_footer_ends_when_nobody_writes_it_any_more(growing, heard):
    hearer = heard(growing.path)
    growing.write_until(growing.blocks[1][1] + 100)
    hearer.until(Line, lambda said: said.events == growing.blocks[2][0] and not said.ended)
    growing.end()
    assert hearer.until(Line, lambda said: said.ended).events == growing.blocks[2][0]


def test_what_was_allocated_since_the_mark_and_stays_is_left(growing, heard, tmp_path):
    hearer = heard(growing.path)
    growing.write_until(growing.blocks[3][1])
    assert hearer.until(Line, lambda said: said.events == growing.blocks[4][0]).mark is None
    hearer.follower.ask("mark")
    assert hearer.until(Line, lambda said: said.mark is not None).mark.left.blocks == 0
    growing.write_until(len(growing.whole))
    last = hearer.until(Line, lambda said: said.ended)
    assert (last.mark.left.blocks, last.mark.left.bytes) == left_since(last.mark.at_ns, tmp_path / "game.txt")
    assert sum(one.left.blocks for one in last.mark.sites) <= last.mark.left.blocks


def test_a_frame_says_its_sites_and_a_site_its_stacks(heard):
    hearer = heard(JOURNAL, ONLY_THE_LAST)
    line = hearer.until(Line, lambda said: said.ended)
    hearer.follower.ask(f"frame {line.worst_frame.number}")
    frame = hearer.until(Frame)
    assert frame == line.worst_frame
    assert frame.ns == max(line.frames.ns)
    site = frame.sites[0]
    hearer.follower.ask(f"stacks {site.site}")
    answer = hearer.until(Stacks)
    assert 0 < len(answer.stacks) <= answer.count
    for stack in answer.stacks:
        assert site.function in [one.function for one in stack.functions]
    hearer.follower.ask(f"frame {line.frames.count + 1}")
    assert hearer.until(Frame).sites is None


def test_damage_is_said_with_what_was_before_it(growing, heard):
    hearer = heard(growing.path)
    end = growing.blocks[1][1]
    growing.whole = growing.whole[: end - 10] + b"\xff\x00" * 5 + growing.whole[end:]
    growing.write_until(growing.blocks[2][1])
    line = hearer.until(Line, lambda said: said.ended)
    assert "does not match its checksum" in line.damage
    assert line.events == growing.blocks[1][0]


def test_a_file_that_is_no_journal_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "notes.byj"
    path.write_text("no journal, but many words of text")
    follower = Follower(path, 60)
    with pytest.raises(UserError, match=r"is no|was a"):
        list(follower.texts())
    follower.close()
