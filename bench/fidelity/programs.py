"""The programs: each one process that ends by itself, and does the same work in every run."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SCRIPTS = ROOT / "tests" / "heap" / "programs"
_NOBODY = 65534
_DISPLAY = ":78"
_ENDED = 124
"""What `timeout` returns when it ended the program."""


@dataclass(frozen=True)
class Program:
    name: str
    command: tuple[str, ...]
    """{scripts} and {games} are folders. Run in a fresh one."""
    files: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    input: str = ""
    as_nobody: bool = False
    """It refuses to run as root."""
    needs: tuple[str, ...] = ()
    real_time: bool = False
    """It draws, keeps its own pace and is ended after a time: a faster allocator gives it more rest."""
    repeats: int = 2


_JSON = """import json
data = [{"n": n, "s": str(n), "l": [n, n + 1, {"x": None}]} for n in range(30000)]
for _ in range(3):
    json.loads(json.dumps(data))
"""
_SQL = """CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, weight REAL, data BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
INSERT INTO item SELECT i, 'name' || (i * 7919 % 10007), i * 0.25, zeroblob(i % 200) FROM n;
BEGIN;
"""
_SQL += "".join(
    f"UPDATE item SET name = 'other{number}', data = zeroblob({number % 900}) WHERE id = {number * 7919 % 40000};\n"
    for number in range(60000)
)
_SQL += """COMMIT;
CREATE INDEX by_name ON item(name);
SELECT a.name, count(*) FROM item a JOIN item b ON a.name = b.name GROUP BY a.name ORDER BY 2 DESC, 1 LIMIT 5;
UPDATE item SET name = upper(name) WHERE id % 3 = 0;
SELECT length(group_concat(name, ',')) FROM (SELECT name FROM item ORDER BY name DESC);
SELECT length(json_group_array(json_object('id', id, 'name', name))) FROM item;
"""
_LUA = """local words, seen, unit = {}, {}, {}
for i = 1, 60000 do words[#words + 1] = "w" .. i * 7919 % 4999 end
local text = table.concat(words, " ")
for word in text:gmatch("%w+") do seen[word] = (seen[word] or 0) + 1 end
for turn = 1, 20 do
  for i = 1, 8000 do unit[i] = {name = "unit " .. i + turn, at = {x = i, y = turn}, items = {i, turn}} end
  table.sort(unit, function(a, b) return a.name < b.name end)
end
print(#text, seen.w1, unit[1].name)
"""
_FREECIV = """set minplayers 0
set aifill 4
hard
set gameseed 42
set mapseed 42
set size 2
set endturn 8
set timeout -1
start
"""

_DRAWN = {"LIBGL_ALWAYS_SOFTWARE": "1", "ALSOFT_DRIVERS": "null", "SDL_AUDIODRIVER": "dummy"}

PROGRAMS = (
    Program("Python", ("/usr/bin/python3", "work.py"), {"work.py": _JSON}, {"PYTHONMALLOC": "malloc"}),
    Program("SQLite", ("sqlite3", ":memory:"), input=_SQL),
    Program(
        "Freeciv",
        ("/usr/games/freeciv-server", "-p", "15556", "-b", "127.0.0.1", "-A", "none", "-e", "-r", "game.serv"),
        {"game.serv": _FREECIV},
        as_nobody=True,
    ),
    Program("Perl", ("perl", "{scripts}/words.pl"), environment={"PERL_HASH_SEED": "0"}),
    Program("Lua", ("lua5.4", "work.lua"), {"work.lua": _LUA}),
    Program("Node.js", ("node", "{scripts}/work.js")),
    Program(
        "Godot",
        (
            "timeout",
            "9",
            "godot3",
            "--path",
            "{games}/godot-shooter",
            "--video-driver",
            "GLES2",
            "--audio-driver",
            "Dummy",
        ),
        environment=_DRAWN,
        needs=("godot3", "{games}/godot-shooter/project.godot", "Xvfb"),
        real_time=True,
        repeats=1,
    ),
    Program(
        "SuperTux",
        ("timeout", "9", "/usr/games/supertux2", "--window", "--geometry", "640x480", "--renderer", "sdl"),
        environment={**_DRAWN, "SDL_RENDER_DRIVER": "software"},
        needs=("/usr/games/supertux2", "Xvfb"),
        real_time=True,
        repeats=1,
    ),
)


def _filled(word: str) -> str:
    games = os.environ.get("BLOCKYARD_GAMES") or ROOT.parent / "shared" / "games"
    return word.format(scripts=_SCRIPTS, games=games)


def command(program: Program, library: str = "") -> list[str]:
    """With the allocator `library` under it, where one is named."""
    settings = {**program.environment, **({"LD_PRELOAD": library} if library else {})}
    user = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"] if _is_other(program) else []
    return [*user, "env", *(f"{name}={value}" for name, value in settings.items()), *map(_filled, program.command)]


def missing(program: Program) -> list[str]:
    wanted = [program.command[0], *map(_filled, program.needs)]
    return [one for one in wanted if shutil.which(one) is None and not Path(one).exists()]


def ended_well(program: Program, code: int) -> bool:
    return code in ((0, _ENDED) if program.real_time else (0,))


def _is_other(program: Program) -> bool:
    return program.as_nobody and os.geteuid() == 0


@contextlib.contextmanager
def prepared(program: Program, folder: Path) -> Iterator[dict[str, Any]]:
    """How its process is started: where, with what input, and on which display."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**program.files, "input": program.input}.items():
        (folder / name).write_text(text)
    if _is_other(program):
        folder.chmod(0o777)
    with contextlib.ExitStack() as stack:
        if program.real_time:
            screen = ("-screen", "0", "800x600x24", "+extension", "GLX")
            server = subprocess.Popen(["Xvfb", _DISPLAY, *screen], stderr=subprocess.DEVNULL)
            stack.callback(server.wait)
            stack.callback(server.terminate)
        yield {
            "cwd": folder,
            "env": {**os.environ, "HOME": str(folder), "DISPLAY": _DISPLAY},
            "stdin": stack.enter_context((folder / "input").open()),
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
