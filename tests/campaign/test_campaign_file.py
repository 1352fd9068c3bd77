"""Campaign files: read, refused with where and why, overridden by options."""

from pathlib import Path

import pytest
from campaign_lab import Lab
from the_command import ROOT, refusal, sentence, success

from blockyard.campaign import settings
from blockyard.errors import UserError

STANDARD = ROOT / "bench/campaigns/standard.toml"


def write(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text)
    return path


def test_a_campaign_file_says_what_runs(lab: Lab) -> None:
    lab.journal("game.txt")
    write(
        lab.folder,
        'allocators = ["null"]\npace = ["max"]\ntouch = ["all"]\nrepeats = 2\n'
        '[[journal]]\nname = "burst"\npath = "game.txt"\nfrom = 0.0\nto = 1.5\n',
    )
    success(lab.replay("--campaign", "own.toml"))
    assert lab.calls() == ["burst null max all 1", "burst null max all 2"]


def test_options_win_over_the_campaign_file(lab: Lab) -> None:
    lab.journal("game.txt")
    write(lab.folder, 'allocators = ["all"]\nrepeats = 5\n[[journal]]\npath = "game.txt"\n')
    lab.replay("--campaign", "own.toml", "-a", "null", "--repeats", 1)
    assert lab.runs() == {"game/null/1x-page/1"}


def test_journals_are_found_in_the_journals_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far/game.byj").touch()
    monkeypatch.setenv("BLOCKYARD_JOURNALS", str(tmp_path / "far"))
    read = settings.read_campaign(write(tmp_path, '[[journal]]\npath = "game.byj"\n'))
    assert read.journals[0].path == tmp_path / "far/game.byj"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("repeats = ", "is not a campaign file"),
        ('repeats = "five"', "'repeats' of the file has the wrong type"),
        ("repeats = true", "'repeats' of the file has the wrong type"),
        ("colour = 1", "the file has 'colour'"),
        ('[[journal]]\nname = "x"', "journal 1 has no path"),
        ('[[journal]]\npath = "gone.byj"', "gone.byj lies neither beside the campaign file nor in"),
        ('[[journal]]\npath = "own.toml"\n[[journal]]\npath = "own.toml"', "two journals are called own.toml"),
        ('pace = ["quick"]', "'quick'"),
    ],
)
def test_a_wrong_campaign_file_is_refused_in_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        settings.read_campaign(write(tmp_path, text))
    assert sentence in str(refusal.value)


@pytest.mark.parametrize("stretch", ["from = -1", "from = nan", "to = inf", "from = -1\nto = 2", "to = 1e300"])
def test_seconds_of_a_campaign_file_that_are_no_place_in_a_journal_are_refused(lab: Lab, stretch: str) -> None:
    lab.journal("game.txt")
    write(lab.folder, f'allocators = ["null"]\n[[journal]]\npath = "game.txt"\n{stretch}\n')
    assert "is not a place in game" in sentence(lab.replay("--campaign", "own.toml"))


def test_a_campaign_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(b"\x89byj")
    with pytest.raises(UserError, match="is not a campaign file: it is not text"):
        settings.read_campaign(tmp_path / "own.toml")


def test_a_campaign_file_and_journals_together_are_refused(lab: Lab) -> None:
    write(lab.folder, "")
    said = refusal(lab.replay(lab.journal("game.txt"), "--campaign", "own.toml"))
    assert "--campaign names journals and stretches itself" in said


@pytest.fixture
def standard() -> settings.Settings:
    folder = settings.journals_folder()
    if folder is None or not (folder / "godot.journal.zst").is_file():
        pytest.skip(
            "SKIPPED LOUDLY: the large journals are not here ($BLOCKYARD_JOURNALS), so the standard campaign "
            "is not checked against them"
        )
    return settings.read_campaign(STANDARD)


def test_the_standard_campaign_is_at_1x_with_page_touch_and_5_repeats_on_every_allocator(
    standard: settings.Settings,
) -> None:
    checked = settings.check(standard)
    assert (checked.paces, checked.touches, checked.repeats) == (("1x",), ("page",), 5)
    assert checked.allocators == ("all",)
    assert len(checked.journals) == 5


def test_the_standard_campaign_replays_for_less_than_an_hour(standard: settings.Settings) -> None:
    from blockyard import allocators

    seconds = sum(journal.to_s - (journal.from_s or 0.0) for journal in standard.journals)
    variants = sum(1 if allocator.absent else 2 for allocator in allocators.load().values())
    assert seconds * variants * standard.repeats < 3600
