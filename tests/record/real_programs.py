"""Records real programs and checks every journal that comes of it. A program that is not installed is named as not
tested, and fails nothing."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recorded import command, environment

from blockyard import native
from blockyard.errors import UserError
from blockyard.units import counted

_PATIENCE_S = 300
_JAVA = """
import java.util.*;

public class Threads {
  public static void main(String[] arguments) throws Exception {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 8; ++i) {
      threads.add(new Thread(() -> {
        Map<Integer, String> map = new HashMap<>();
        for (int n = 0; n < 200000; ++n) map.put(n, "value " + n);
      }));
    }
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
    System.gc();
  }
}
"""
_NODE = """
const { Worker } = require("worker_threads");
for (let i = 0; i < 200; ++i) require("zlib").gzip(Buffer.alloc(100000, i), () => {});
for (let i = 0; i < 4; ++i) new Worker("let a = []; for (let i = 0; i < 100000; ++i) a.push({ i });", { eval: true });
"""
_SQL = """
create table t(a, b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 200000) insert into t select x, hex(x) from c;
create index i on t(b); select count(*) from t; vacuum;
"""
_REDIS = """
redis-server --port 7391 --save '' --dir . > server.log & server=$!
until redis-cli -p 7391 ping 2> /dev/null | grep -q PONG; do kill -0 $server; done
redis-benchmark -p 7391 -q -n 20000 -P 8 -t set,get,lpush,lrange_100 > benchmark.log
redis-cli -p 7391 bgsave > /dev/null
while redis-cli -p 7391 info persistence | grep -q bgsave_in_progress:1; do :; done
redis-cli -p 7391 shutdown nosave
wait $server
"""
_GODOT = {
    "project.godot": """config_version=4
[application]
run/main_scene="res://main.tscn"
[display]
window/size/width=320
window/size/height=240
[rendering]
quality/driver/driver_name="GLES2"
""",
    "main.tscn": """[gd_scene load_steps=2 format=2]
[ext_resource path="res://main.gd" type="Script" id=1]
[node name="Main" type="Node2D"]
script = ExtResource( 1 )
""",
    "main.gd": """extends Node2D
var frames := 0
func _process(_delta):
\tframes += 1
\tfor i in range(20):
\t\tvar label = Label.new()
\t\tlabel.text = "%d in frame %d" % [i, frames]
\t\tadd_child(label)
\tif frames > 10:
\t\tfor child in get_children(): child.queue_free()
\tif frames == 120: get_tree().quit()
""",
}


@dataclass(frozen=True)
class Program:
    name: str
    needs: tuple[str, ...]
    """Commands that must be there."""
    command: tuple[str, ...]
    files: dict[str, str]
    """Written into the empty folder in which it runs."""
    frames: int = 0
    """Frame marks that its journals must hold at least."""
    on_screen: bool = False


PROGRAMS = (
    Program("sqlite", ("sqlite3",), ("sqlite3", ":memory:", ".read work.sql"), {"work.sql": _SQL}),
    Program("node", ("node",), ("node", "work.js"), {"work.js": _NODE}),
    Program("javac", ("javac",), ("javac", "Threads.java"), {"Threads.java": _JAVA}),
    Program("java", ("java", "javac"), ("java", "Threads.java"), {"Threads.java": _JAVA}),
    Program("redis", ("redis-server", "redis-benchmark"), ("bash", "-e", "work"), {"work": _REDIS}),
    Program(
        "godot",
        ("godot3", "Xvfb"),
        ("godot3", "--video-driver", "GLES2", "--audio-driver", "Dummy"),
        _GODOT,
        frames=100,
        on_screen=True,
    ),
)


@contextmanager
def screen(wanted: bool) -> Iterator[dict[str, str]]:
    """The environment of an invisible display."""
    if not wanted:
        yield {}
        return
    ours, theirs = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(theirs), "-screen", "0", "640x480x24", "+extension", "GLX"],
        pass_fds=[theirs],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    try:
        with os.fdopen(ours) as display:
            yield {"DISPLAY": f":{display.readline().strip()}", "LIBGL_ALWAYS_SOFTWARE": "1"}
    finally:
        server.terminate()
        server.wait()


def failures(program: Program, folder: Path) -> Iterator[str]:
    for name, text in program.files.items():
        (folder / name).write_text(text)
    output = folder / "recorded.byj"
    with screen(program.on_screen) as display:
        done = subprocess.run(
            command(output, *program.command),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            env=environment(HOME=str(folder), **display),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    if done.returncode != 0:
        yield f"it ended with {done.returncode}: {done.stderr[-500:]}"
    events = frames = 0
    for journal in sorted(folder.glob("*.byj")):
        try:
            facts = json.loads(native.call("blockyard-journal", ["check", "--json", journal]))
        except UserError as error:
            yield str(error)
            continue
        events, frames = events + facts["events"], frames + facts["frame_marks"]
    if events == 0:
        yield "nothing was recorded"
    if frames < program.frames:
        yield f"{frames} frames are marked; it drew {program.frames} at least"
    journals = counted(len(list(folder.glob("*.byj"))), "journal")
    print(f"{events:,} events, {frames} frame marks in {journals}", end="", flush=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", metavar="NAME", nargs="*", help="only these")
    names = options.parse_args().names
    if unknown := set(names) - {program.name for program in PROGRAMS}:
        options.error(
            f"no program is called {', '.join(sorted(unknown))}; there are "
            f"{', '.join(program.name for program in PROGRAMS)}"
        )
    failed = []
    for program in PROGRAMS:
        if names and program.name not in names:
            continue
        print(f"{program.name:<8} ", end="", flush=True)
        if absent := [need for need in program.needs if shutil.which(need) is None]:
            print(f"NOT TESTED: {', '.join(absent)} is not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = list(failures(program, Path(folder)))
        print("".join(f"\n  FAILED: {reason}" for reason in found))
        failed += [program.name] if found else []
    if failed:
        print(f"blockyard: failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
