"""The code that advice shows compiles against the library's headers, and against the C# library where one is built."""

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace as Named

import pytest

from blockyard.advise import code, tool

ROOT = Path(__file__).resolve().parents[2]
DOTNET = ROOT / "dotnet" / "build"


def advice(what: str, file: str = "game.cpp", function: str = "spawn", asker: str = "", **evidence: int) -> Named:
    """As far as code is made of it."""
    seen = Named(**{"region_bytes": 65536, "threads": 1, "remote_frees": 0, "copies": 0} | evidence)
    where = Named(function=function, file=file)
    return Named(what=what, bytes=4096, where=where, contexts=[], evidence=seen, asker=asker)


def compile_body(folder: Path, lines: list[str], compiler: str, *options: str, suffix: str = "cpp") -> None:
    """As the body of a function that has `bytes`; nothing but what the snippet includes is known."""
    path = os.environ.get({"c++": "CXX", "cc": "CC"}[compiler]) or shutil.which(compiler)
    assert path, f"no {compiler}"
    source = folder / f"shown.{suffix}"
    shown = [line for line in lines if not line.startswith("#include")]
    body = [*shown, "(void)bytes;"] + ["(void)block;"] * any("void* block" in line for line in shown)
    if any("void* buffer = " in line for line in shown):
        body.append("free(buffer);" if suffix == "c" else "std::free(buffer);")
    includes = ["#include <stddef.h>", "#include <cstddef>"][suffix != "c" :]
    includes = includes[:1] + [line for line in lines if line.startswith("#include")]
    source.write_text("\n".join([*includes, "void use(size_t bytes);", "void use(size_t bytes) {", *body, "}\n"]))
    command = [path, *options, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result"]
    done = subprocess.run(
        [*command, f"-I{ROOT / 'library' / 'include'}", source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", tool.KINDS)
def test_the_cpp_code_compiles_without_a_warning(tmp_path, what):
    compile_body(tmp_path, ["#include <cstddef>", "using std::size_t;", *code.cpp(advice(what)).splitlines()], "c++",
                 "-std=c++20")  # fmt: skip


@pytest.mark.parametrize("what", tool.KINDS)
@pytest.mark.parametrize("standard", ["c11", "c++17"])
def test_the_c_code_compiles_as_c_and_as_older_cpp(tmp_path, what, standard):
    lines = code.native(advice(what, "game.c")).splitlines()
    if standard == "c11":
        compile_body(tmp_path, lines, "cc", "-std=gnu11", suffix="c")
    elif what != "keep":  # whose realloc returns void*
        compile_body(tmp_path, [*lines, "using std::free;"] if what == "reserve" else lines, "c++", "-std=gnu++17")


def test_cpp_headers_tell_an_older_standard_what_they_need(tmp_path):
    source = tmp_path / "old.cpp"
    source.write_text("#include <blockyard/static_block_allocator.hpp>\n")
    compiler = os.environ.get("CXX") or shutil.which("c++")
    command = [compiler, "-std=c++17", "-fsyntax-only", f"-I{ROOT / 'library' / 'include'}", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "Blockyard's C++ headers need C++20" in done.stderr


def test_the_language_is_that_of_the_file_or_of_the_names():
    assert code.is_c(advice("pool", "client.c")) and not code.is_c(advice("pool", "client.cc"))
    nameless = advice("pool", "")
    nameless.contexts = [[Named(function="net_send"), Named(function="main")]]
    assert code.is_c(nameless)
    nameless.contexts[0].append(Named(function="app::send(int)"))
    assert not code.is_c(nameless)
    assert not code.is_c(advice("pool", "", "main"))
    assert code.is_c(advice("pool", "", "game+0x1159"), cpp_is_seen=False)
    assert not code.is_c(advice("pool", "client.cc"), cpp_is_seen=False)


def test_a_c_pool_of_several_threads_is_no_block_pool_of_one():
    assert "one thread at a time" in code.native(advice("pool", "client.c"))
    for more in ({"threads": 2}, {"remote_frees": 9}):
        other = advice("pool", "client.c", **more)
        assert "by_block_pool" not in code.native(other) and 'extern "C"' in code.native(other)


@pytest.mark.parametrize(
    "asker, name",
    [
        ("std::map<int, Unit, std::less<int>, std::allocator<std::pair<int const, Unit>>>::operator[](int&&)", "map"),
        ("std::_Rb_tree<int, int>::_M_insert_(int const&)", "map"),
        ("std::__cxx11::list<Unit, std::allocator<Unit> >::push_back(Unit const&)", "list"),
        ("std::unordered_map<int, int>::emplace(int, int)", "unordered_map"),
        ("std::multiset<int>::insert(int)", "multiset"),
        ("std::vector<std::map<int, int>>::push_back()", ""),
        ("std::make_unique<std::map<int, int>>()", ""),
        ("operator new(unsigned long)", ""),
    ],
)
def test_nodes_of_a_container_get_the_librarys_allocator(tmp_path, asker, name):
    assert code.container(asker) == name
    lines = code.cpp(advice("pool", asker=asker)).splitlines()
    assert ("blockyard::allocator<" in "\n".join(lines)) == bool(name)
    if name:
        uses = [
            "#include <cstddef>",
            "using Key [[maybe_unused]] = int;",
            "using Value [[maybe_unused]] = int;",
            "using std::size_t;",
        ]
        compile_body(tmp_path, [*uses, *lines, "(void)nodes;"], "c++", "-std=c++20")


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
