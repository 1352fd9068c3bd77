"""`blockyard live` on programs that run."""

import asyncio
import importlib.util
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys

import pytest
import the_command
from growing import JOURNAL

from blockyard import native

# Runs until the file that its argument names is there.
_GAME = """
import os, sys, time
kept = []
while len(kept) < 40 or not os.path.exists(sys.argv[1]):
    kept.append(bytearray(100_003))
    time.sleep(0.02)
print("the game is over")
"""


def lines_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_lines_come_while_the_program_runs_and_end_with_what_the_journal_holds(tmp_path):
    journal, over = tmp_path / "game.byj", tmp_path / "over"
    process = the_command.started("live", "--json", "-o", journal, "--", sys.executable, "-c", _GAME, over)
    first = json.loads(process.stdout.readline())
    assert not first["ended"]
    over.touch()
    rest, told = process.communicate()
    assert process.returncode == 0
    assert "the game is over" in told
    last = lines_of(rest)[-1]
    assert last["ended"]
    info = the_command.told("info", journal)
    assert last["events"] == info["events"]
    assert last["all"]["allocations"] == info["allocations"]
    assert last["live"] == {"blocks": info["live_at_end"]["blocks"], "bytes": info["live_at_end"]["bytes"]}


def test_a_launcher_is_left_for_the_program_that_it_executes(tmp_path):
    journal, over = tmp_path / "game.byj", tmp_path / "over"
    script = f'exec "{sys.executable}" -c "$@"'
    process = the_command.started(
        "live", "--json", "-o", journal, "--", "/bin/sh", "-c", script, "sh", _GAME, over, stderr=None
    )
    while "python" not in json.loads(process.stdout.readline())["program"]:
        pass
    over.touch()
    rest, _ = process.communicate()
    assert process.returncode == 0
    last = lines_of(rest)[-1]
    assert "python" in last["program"]
    assert last["ended"]


def test_the_exit_code_and_the_refusals_of_the_recorder_are_passed_on(tmp_path):
    done = the_command.blockyard("live", "--json", "-o", tmp_path / "a.byj", "--", "/bin/sh", "-c", "exit 7")
    assert done.returncode == 7
    done = the_command.blockyard("live", "--json", "-o", tmp_path / "b.byj", "--", tmp_path / "nothing-here")
    assert "nothing-here" in the_command.refusal(done)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["live"], "name what to watch"),
        (["live", "--json", "--pid", "1", "--", "true"], "name what to watch"),
        (["live", "--json", "nothing.byj"], "nothing.byj was not found"),
        (["live", "--json", "a.byj", "b.byj"], "one journal at a time"),
        (["live", "--json", __file__], "is no .byj; 'blockyard convert'"),
        (["live", "--json", "-o", "x.byj", JOURNAL], "takes neither -o nor"),
        (["live", "--json", "--browser", JOURNAL], "give one of them"),
        (["live", JOURNAL], "the view needs a terminal"),
        (["live", "--json", "-o", JOURNAL, "--", "true"], "exists already"),
    ],
)
def test_what_can_not_be_shown_is_refused_in_a_sentence(tmp_path, arguments, sentence):
    assert sentence in the_command.refusal(the_command.blockyard(*arguments, cwd=tmp_path, stdin=None))


@pytest.mark.parametrize("follower", [None, "#!/bin/sh\necho blockyard: it fails >&2; exit 1"])
def test_a_program_that_runs_already_is_left_where_nothing_can_follow(tmp_path, follower):
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("blockyard-collect", "blockyard-attach", "blockyard-names", "libblockyard-record.so"):
        (parts / name).symlink_to(native.path(name))
    if follower:
        (parts / "blockyard-follow").write_text(follower)
        (parts / "blockyard-follow").chmod(0o755)
    journal, over = tmp_path / "game.byj", tmp_path / "over"
    with subprocess.Popen([sys.executable, "-c", _GAME, over], stdout=subprocess.DEVNULL) as game:
        try:
            line = ["live", "--json", "-o", journal, "--pid", game.pid]
            done = the_command.blockyard(*line, more={"BLOCKYARD_BUILD": str(parts)}, timeout=60)
        finally:
            over.touch()
    assert ("it fails" if follower else "blockyard-follow was not found") in the_command.refusal(done)
    assert journal.exists() == bool(follower)
    if follower:
        the_command.success(the_command.blockyard("check", journal))


@pytest.mark.skipif(not importlib.util.find_spec("textual"), reason="Textual is not installed")
def test_q_ends_the_view_and_not_the_program(tmp_path):
    """In a terminal of its own: the program prints after the view has gone."""
    journal, over = tmp_path / "game.byj", tmp_path / "over"
    keyboard, terminal = pty.openpty()
    process = the_command.started(
        "live", "-o", journal, "--", sys.executable, "-c", _GAME, over, stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    seen = b""
    pressed = False
    while True:
        select.select([keyboard], [], [])
        try:
            seen += os.read(keyboard, 1 << 16)
        except OSError:  # the last one who had the terminal open is gone
            break
        if not pressed and b"recording" in seen:
            os.write(keyboard, b"q")
            pressed = True
        if b"runs on and is recorded" in seen:
            over.touch()
    os.close(keyboard)
    assert process.wait() == 0
    after = seen.rpartition(b"runs on and is recorded")[2]
    assert b"the game is over" in after
    assert the_command.told("info", journal)["allocations"] > 40


def test_a_browser_of_this_machine_gets_the_same_view(tmp_path):
    aiohttp = pytest.importorskip("aiohttp")
    pytest.importorskip("textual_serve")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = the_command.started("live", "--browser", "--port", port, JOURNAL, stdout=subprocess.DEVNULL)

    async def screen() -> str:
        async with aiohttp.ClientSession() as session:
            while True:
                try:
                    web = await session.ws_connect(f"ws://127.0.0.1:{port}/ws?width=80&height=24")
                    break
                except aiohttp.ClientConnectorError:  # it does not listen yet
                    assert server.poll() is None, server.stderr.read()
                    await asyncio.sleep(0.1)
            async with session.get(f"http://127.0.0.1:{port}/") as answer:
                page = await answer.text()
            for url in re.findall(r"""(?:src|href|url|URL|data-[a-z-]*url)(?:=|\()["']([^"']+)""", page):
                assert url.split("/")[2] == f"127.0.0.1:{port}", url
            seen = b""
            while b"the journal is complete" not in seen:
                message = await web.receive()
                assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT)
                seen += message.data if isinstance(message.data, bytes) else b""
            return seen.decode(errors="replace")

    try:
        assert "godot3-runner" in asyncio.run(screen())
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate()
