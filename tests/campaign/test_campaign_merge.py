"""Shares of a campaign, run apart and joined."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from campaign_lab import Lab
from the_command import refusal, sentence, success


@pytest.fixture
def shares(lab: Lab) -> list[Path]:
    """Two shares of one campaign."""
    journal = lab.journal("game.txt")
    for number in (1, 2):
        options = ("-a", "glibc,null", "--repeats", 4, "--shard", f"{number}/2")
        success(lab.replay(journal, *options, output=f"share{number}"))
    return [lab.folder / "share1", lab.folder / "share2"]


def rewrite(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_shares_joined_hold_every_run_of_the_campaign(lab: Lab, shares: list[Path]) -> None:
    done = success(lab.blockyard("merge", "-o", "whole", *shares))
    assert "8 of 8 runs joined" in done.stdout
    planned = json.loads((lab.folder / "whole/campaign.json").read_text())["runs"]
    assert lab.runs("whole") == {run["id"] for run in planned}
    assert lab.runs("share1") and not lab.runs("share1") & lab.runs("share2")


def test_joined_runs_keep_what_they_measured_and_what_their_journal_shares(lab: Lab, shares: list[Path]) -> None:
    for share in shares:
        (share / "runs" / "game" / "sites.bys").write_text("call stacks")
    lab.blockyard("merge", "-o", "whole", *shares)
    for share in shares:
        for file in share.glob("runs/**/*.*"):
            assert (lab.folder / "whole" / file.relative_to(share)).read_bytes() == file.read_bytes()


def test_traced_runs_are_shared_and_joined_like_the_others(lab: Lab) -> None:
    journal = lab.journal("game.txt")
    for number in (1, 2):
        lab.replay(
            journal, "-a", "glibc,null", "--repeats", 1, "--trace", "--shard", f"{number}/2", output=f"share{number}"
        )
    assert not lab.runs("share1") & lab.runs("share2")
    success(lab.blockyard("merge", "-o", "whole", "share1", "share2"))
    assert {f"game/{name}/1x-page/{run}" for name in ("glibc", "null") for run in ("1", "trace")} == lab.runs("whole")


def test_the_result_says_which_machine_ran_which_share(lab: Lab, shares: list[Path]) -> None:
    lab.blockyard("merge", "-o", "whole", *shares)
    joined = json.loads((lab.folder / "whole/machine.json").read_text())["joined"]
    assert [(part["share"], part["runs"]) for part in joined] == [("1/2", 4), ("2/2", 4)]


def test_a_missing_share_is_said(lab: Lab, shares: list[Path]) -> None:
    done = success(lab.blockyard("merge", "-o", "whole", shares[0]))
    assert "4 runs are in none of the shares" in done.stderr


def test_machines_of_different_kinds_are_refused_with_what_differs(lab: Lab, shares: list[Path]) -> None:
    rewrite(shares[1] / "machine.json", kind="another", kernel="5.0")
    assert "different kinds of machines (kernel " in refusal(lab.blockyard("merge", "-o", "whole", *shares))
    assert not (lab.folder / "whole").exists()


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('"repeats": 4', '"repeats": 3', "not of one campaign: their repeats are 4 there and 3 here"),
        ('"version": "1.0"', '"version": "9.9"', "the versions of glibc are 1.0 there and 9.9 here"),
        ('"sha256": "', '"sha256": "0', "journal game has other contents"),
    ],
)
def test_shares_of_different_campaigns_are_refused_with_what_differs(
    lab: Lab, shares: list[Path], before: str, after: str, sentence: str
) -> None:
    path = shares[1] / "campaign.json"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    assert sentence in refusal(lab.blockyard("merge", "-o", "whole", *shares))


def test_a_run_that_two_shares_have_is_refused(lab: Lab, shares: list[Path]) -> None:
    options = ("-a", "glibc,null", "--repeats", 4, "--shard", "1/2")
    success(lab.replay(lab.folder / "game.txt", *options, output="again"))
    assert "leave one of them out" in refusal(lab.blockyard("merge", "-o", "whole", shares[0], lab.folder / "again"))


def test_a_folder_that_holds_something_is_refused_as_output(lab: Lab, shares: list[Path]) -> None:
    assert "already holds something" in refusal(lab.blockyard("merge", "-o", shares[0], shares[1]))


def test_a_full_disk_leaves_nothing_half_joined_and_says_so(
    lab: Lab, shares: list[Path], a_full_disk: list[str]
) -> None:
    small = lab.folder / "small"
    script = (
        f"head -c 100m /dev/zero > {small}/others 2>/dev/null; "
        f"{sys.executable} -m blockyard merge -o {small}/whole {shares[0]} {shares[1]}; code=$?; ls {small}; "
        "exit $code"
    )
    done = subprocess.run(
        [*a_full_disk, "sh", "-c", script],
        env=lab.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "is full; nothing was joined" in done.stderr and "--resume" not in done.stderr
    assert done.stdout.split() == ["others"]


def test_what_is_no_share_is_refused(lab: Lab, shares: list[Path]) -> None:
    (lab.folder / "picture.png").write_bytes(b"PNG")
    (lab.folder / "empty").mkdir()
    for name in ("picture.png", "empty"):
        said = refusal(lab.blockyard("merge", "-o", "whole", shares[0], lab.folder / name))
        assert name in said


def test_a_damaged_campaign_is_refused_without_a_trace(lab: Lab, shares: list[Path]) -> None:
    (shares[1] / "campaign.json").write_text('{"format": 1, "jour')
    assert "campaign.json" in sentence(lab.blockyard("merge", "-o", "whole", *shares))
