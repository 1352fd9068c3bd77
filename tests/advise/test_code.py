"""The code that advice shows compiles against the library's headers, and against the C# library where one is built."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from blockyard.advise import code, tool

ROOT = Path(__file__).resolve().parents[2]
DOTNET = ROOT / "dotnet" / "build"


def advice(what: str) -> dict:
    return {"what": what, "bytes": 4096, "evidence": {"region_bytes": 65536}}


@pytest.mark.parametrize("what", tool.KINDS)
def test_the_cpp_code_compiles_without_a_warning(tmp_path, what):
    compiler = os.environ.get("CXX") or shutil.which("c++")
    assert compiler, "no C++ compiler"
    lines = code.cpp(advice(what)).splitlines()
    source = tmp_path / "shown.cpp"
    shown = [line for line in lines if not line.startswith("#include")]
    body = [*shown, "(void)bytes;"] + ["(void)block;"] * any("void* block" in line for line in shown)
    body += ["std::free(buffer);"] if what == "reserve" else []
    includes = ["#include <cstddef>", *(line for line in lines if line.startswith("#include"))]
    source.write_text(
        "\n".join([*includes, "void use(std::size_t bytes);", "void use(std::size_t bytes) {", *body, "}\n"])
    )
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result"]
    done = subprocess.run(
        [*command, f"-I{ROOT / 'library' / 'include'}", source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_csharp_code_compiles(tmp_path):
    library = next(iter(sorted(DOTNET.glob("net8/Blockyard.Memory.dll"))), None)
    toolchain = ROOT / "dotnet" / "build" / "toolchain"
    if library is None or not (toolchain / "roslyn" / "compile.dll").is_file():
        pytest.skip("the C# library and its compiler are not built here: dotnet/fetch-toolchain, dotnet/compile")
    uses, methods = set(), []
    for what in tool.KINDS:
        use, *shown = code.csharp(advice(what)).splitlines()
        uses.add(use)
        methods += [f"    public static void {what}(int count)", "    {", *shown, "    }"]
    source = tmp_path / "Shown.cs"
    source.write_text("\n".join(["using System;", *sorted(uses), "public static class Shown", "{", *methods, "}\n"]))
    runtime = next(iter(sorted((toolchain / "dotnet" / "shared" / "Microsoft.NETCore.App").iterdir())))
    references = [f"-r:{one}" for one in runtime.glob("System*.dll")] + [f"-r:{runtime / 'mscorlib.dll'}"]
    done = subprocess.run(
        [
            ROOT / "dotnet" / "toolchain" / "csc", "-noconfig", "-nostdlib", "-target:library", "-langversion:9",
            f"-out:{tmp_path / 'Shown.dll'}", f"-r:{library}", *references, source,
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
