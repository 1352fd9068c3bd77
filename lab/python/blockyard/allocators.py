"""The allocators that a replay can drive: what exists, what was asked for, what this machine has.

`load` reads adapters/allocators.toml, `resolve` turns `-a glibc,jemalloc@prefaulted,mine=./libmine.so` into choices.
Whether an allocator can be had is found out by starting it: a child process loads the adapter, allocates and frees.
An allocator that fails there is a choice too, with the reason in `missing`. A shared object of the user's own that
crashes there is to be run all the same, and its runs fail: `crashed` says so beforehand.
"""

import dataclasses
import difflib
import functools
import os
import platform
import re
import site
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from blockyard import native
from blockyard.errors import UserError

DEFAULTS, PREFAULTED = "defaults", "prefaulted"
"""The variants in which an allocator is replayed."""
PROBE = "blockyard-probe"
FOREIGN_ADAPTER = "blockyard-adapter-foreign.so"
# Adapters read these two: the library to drive, and its version where the library can't tell.
LIBRARY_VARIABLE = "BLOCKYARD_ALLOCATOR_LIBRARY"
VERSION_VARIABLE = "BLOCKYARD_ALLOCATOR_VERSION"
# Debian's jemalloc and every scudo have more initial-exec TLS than dlopen finds room for by default.
_STATIC_TLS = "glibc.rtld.optional_static_tls=20000"
_PROBE_SECONDS = 60


class Library(msgspec.Struct, frozen=True, rename={"origin": "from"}):
    """One place where an allocator's shared object may lie."""

    path: str
    origin: str = ""
    package: str = ""

    @property
    def absent(self) -> str:
        """Why it can't be found."""
        built = self.path.removeprefix("built:")
        return f"{self.package} is not installed" if built == self.path else _not_built(built)


class Allocator(
    msgspec.Struct, frozen=True, rename={"libraries": "library", "origin": "from", "version_from": "version"}
):
    """One entry of allocators.toml. `prefaulted` has the settings of that variant beside the others, with its notes, or
    says why there is none (`absent`)."""

    name: str
    title: str
    adapter: str
    libraries: tuple[Library, ...] = ()
    origin: str = ""
    version_from: str | None = None
    notes: str = ""
    environment: dict[str, str] = {}
    options: str = ""
    prefaulted: dict[str, Any] = {}

    @property
    def absent(self) -> str | None:
        return self.prefaulted.get("absent")

    def choice(self, variant: str | None = None) -> "Choice":
        """What is known of it in that variant before it is started."""
        more = self.prefaulted if variant else {}
        first = f"{self.libraries[0].origin} {self.libraries[0].package}" if self.libraries else ""
        return Choice(
            name=f"{self.name}@{variant}" if variant else self.name,
            base=self.name,
            variant=variant,
            title=self.title,
            adapter=Path(self.adapter),
            foreign=None,
            environment={**self.environment, **more.get("environment", {})},
            options=",".join(filter(None, [self.options, more.get("options", "")])),
            populate=variant is not None,
            flags=frozenset(),
            version="",
            origin=self.origin or first,
            notes=_joined(self.notes, more.get("notes", "")),
            missing=None,
        )


@dataclasses.dataclass(frozen=True)
class Choice:
    """One allocator in one variant, ready to be driven, or `missing` with the reason.

    `environment` is what a run's process needs on top of the surrounding one; `options` and `populate` are for
    by_adapter_setup.
    """

    name: str
    base: str
    variant: str | None
    title: str
    adapter: Path
    foreign: Path | None
    environment: dict[str, str]
    options: str
    populate: bool
    flags: frozenset[str]
    version: str
    origin: str
    notes: str
    missing: str | None
    crashed: str | None = None

    @property
    def named(self) -> dict[str, str]:
        """How a campaign's plan names it."""
        return {"name": self.name, "base": self.base, "variant": self.variant or "defaults", "version": self.version}

    @property
    def needs_lock(self) -> bool:
        return "needs_lock" in self.flags

    @property
    def needs_pool(self) -> bool:
        return "needs_pool" in self.flags


def load() -> dict[str, Allocator]:
    """Every allocator of allocators.toml, in its order."""
    return dict(_load(native.data("allocators.toml", "adapters")))


def of_library(file_name: str) -> str | None:
    """Which allocator a library is, such as `libjemalloc.so.2`; None for those that no replay drives."""
    if re.fullmatch(r"libc(\.so\.6|-2\.\d+\.so)", file_name):
        return "glibc"
    driven = (name for name in load() if name != "null")  # which stands for no library
    return next((name for name in driven if re.search(rf"(^lib|[._-]){name}", file_name)), None)


def resolve(spec: str | Sequence[str], also: Sequence[str] = ()) -> list[Choice]:
    """The choices that `spec` names, each once, in order.

    A name is an allocator, `ALLOCATOR@prefaulted`, `NAME=FILE` for a shared object that exports malloc and free (or is
    an adapter itself), `defaults`, `prefaulted`, or `all` for both of these, defaults first. Raises UserError for a
    name that does not exist, which says those that do, and `also`, the caller's own; an allocator that exists but
    can't be had comes back with `missing`.
    """
    known = load()
    plans: dict[str, tuple[Choice, Allocator]] = {}
    for word in _words(spec):
        for plan in _plans(word, known, also):
            name = plan[0].name
            if plans.setdefault(name, plan) != plan:
                raise UserError(f"two different allocators are called '{name}': rename one of them")
    if not plans:
        raise UserError(f"no allocator was named; choose from {', '.join(known)}, or all")
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as workers:
        return list(workers.map(_probed, *zip(*plans.values(), strict=True)))


@functools.cache
def _load(registry: Path) -> dict[str, Allocator]:
    with registry.open("rb") as file:
        entries = tomllib.load(file)
    return {name: msgspec.convert({"name": name, **entry}, Allocator) for name, entry in entries.items()}


def _words(spec: str | Sequence[str]) -> list[str]:
    parts = [spec] if isinstance(spec, str) else spec
    return [word.strip() for part in parts for word in part.split(",") if word.strip()]


def _plans(word: str, known: Mapping[str, Allocator], also: Sequence[str]) -> list[tuple[Choice, Allocator]]:
    """Allocators in one variant each, before anybody looked whether this machine has them."""
    if "=" in word:
        return [_foreign(word, known)]
    defaults = [(one.choice(), one) for one in known.values()]
    prefaulted = [(one.choice(PREFAULTED), one) for one in known.values() if not one.absent]
    groups = {"all": defaults + prefaulted, "defaults": defaults, PREFAULTED: prefaulted}
    if word in groups:
        return groups[word]
    base, at, variant = word.partition("@")
    if base not in known:
        near = difflib.get_close_matches(base, (*also, *known), n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "a shared object of your own is NAME=FILE"
        raise UserError(f"there is no allocator '{base}' (there are {', '.join((*also, *known))}, all): {hint}")
    if at and variant != PREFAULTED:
        raise UserError(f"there is no variant '{variant}' of {base}: write {base} or {base}@{PREFAULTED}")
    if at and known[base].absent:
        raise UserError(f"{base} has no @{PREFAULTED} variant: {known[base].absent}")
    return [(known[base].choice(variant or None), known[base])]


def _foreign(word: str, known: Mapping[str, Allocator]) -> tuple[Choice, Allocator]:
    name, _, file = word.partition("=")
    if not re.fullmatch(r"[A-Za-z0-9_.+-]+", name) or name in {"all", "defaults", PREFAULTED, ".", ".."}:
        raise UserError(f"'{name}' can't name an allocator: use letters, digits, '_', '.', '+' and '-'")
    if name in known:
        raise UserError(f"'{name}' is an allocator of Blockyard's own: give {file} another name")
    path = Path(file).expanduser().absolute()
    if not path.is_file():
        raise UserError(f"there is no file {file} to take the allocator '{name}' from")
    allocator = Allocator(name, path.name, FOREIGN_ADAPTER, origin=path.name)
    return dataclasses.replace(allocator.choice(), foreign=path), allocator


class _Probed(msgspec.Struct, frozen=True):
    version: str
    flags: frozenset[str]


def _probed(choice: Choice, allocator: Allocator) -> Choice:
    libraries = allocator.libraries
    adapter = native.find(allocator.adapter)
    if adapter is None:
        return dataclasses.replace(choice, environment={}, missing=_not_built(allocator.adapter))
    plan = dataclasses.replace(choice, adapter=adapter)
    if choice.foreign is not None:
        adapter_itself = _probe(dataclasses.replace(plan, adapter=choice.foreign), allocator, None)
        adapter_itself = dataclasses.replace(adapter_itself, foreign=None)
        if adapter_itself.missing is None and adapter_itself.crashed is None:
            return adapter_itself
        wrapped = _probe(plan, allocator, Library(str(choice.foreign), choice.foreign.name))
        # One that crashes as it is and exports no malloc to be wrapped was an adapter.
        return adapter_itself if wrapped.missing is not None and adapter_itself.crashed else wrapped
    if not libraries:
        return _probe(plan, allocator, None)
    first: Choice | None = None
    for library in libraries:
        choice = _probe(plan, allocator, library)
        if choice.missing is None:
            if first is None:
                return choice
            instead = f"in place of {libraries[0].package}, which is not here"
            return dataclasses.replace(choice, notes=_joined(instead, choice.notes))
        first = first or choice
    assert first is not None
    return first


def _probe(plan: Choice, allocator: Allocator, library: Library | None) -> Choice:
    """Starts the allocator in a child process and asks it for its version."""

    def missing(reason: str) -> Choice:
        return dataclasses.replace(plan, environment={}, missing=reason)

    environment = dict(sorted(plan.environment.items()))
    environment["GLIBC_TUNABLES"] = _merged_tunables(
        [os.environ.get("GLIBC_TUNABLES", ""), _STATIC_TLS, environment.get("GLIBC_TUNABLES", "")]
    )
    origin = allocator.origin
    if library is not None:
        found = _library_path(library)
        if found is None:
            return missing(library.absent)
        environment[LIBRARY_VARIABLE] = found
        origin = f"{library.origin} {library.package}".strip()
    if allocator.version_from:
        version = _package_version(allocator.version_from)
        if version:
            environment[VERSION_VARIABLE] = version
    probe = native.find(PROBE)
    if probe is None:
        return missing(_not_built(PROBE))
    given = native.arguments({"--options": plan.options, "--populate": plan.populate})
    try:
        done = subprocess.run(
            [str(probe), str(plan.adapter), *given],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return missing(f"it did not answer within {_PROBE_SECONDS} s")
    except OSError as error:
        return missing(f"{PROBE} can't be started: {error.strerror}")
    found = dataclasses.replace(plan, environment=environment, origin=origin)
    if done.returncode < 0 and plan.foreign is not None:
        how = native.signal_name(-done.returncode)
        return dataclasses.replace(found, crashed=f"it crashed ({how}) when it was asked for a few blocks")
    if done.returncode != 0:
        reason = native.sentence(plan.adapter.name, done.returncode, done.stderr.splitlines())
        if library is not None and library.package:
            reason += f" (package {library.package})"
        return missing(reason)
    facts = native.decoded(PROBE, done.stdout, _Probed)
    return dataclasses.replace(found, version=facts.version, flags=facts.flags)


def _not_built(name: str) -> str:
    """Why a native file is absent: a failed build leaves NAME.missing with one sentence in place of NAME."""
    reason = native.find(f"{name}.missing")
    if reason is not None:
        return reason.read_text(errors="replace").strip()
    return f"{name} was not built"


def _library_path(library: Library) -> str | None:
    """What dlopen is to be given, or None for a distribution that is not installed or a file that was not built."""
    if library.path.startswith("built:"):
        found = native.find(library.path.removeprefix("built:"))
        return str(found) if found else None
    if not library.path.startswith("python:"):
        return library.path.replace("{machine}", platform.machine())
    relative = library.path.removeprefix("python:")
    folders = [sysconfig.get_path("platlib"), sysconfig.get_path("purelib"), site.getusersitepackages(), *sys.path]
    for folder in folders:
        candidate = Path(folder or ".") / relative
        if candidate.is_file():
            return str(candidate)
    return None


@functools.cache
def _package_version(source: str) -> str | None:
    kind, _, package = source.partition(":")
    if kind != "dpkg":
        raise ValueError(f"allocators.toml: a version can come from dpkg only, not from {source}")
    try:
        done = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    # "1:19.1.7-3~deb12u1": the upstream version stands between epoch and Debian's own revision.
    return re.sub(r"^\d+:|-[^-]*$", "", done.stdout.strip()) if done.returncode == 0 else None


def _merged_tunables(texts: Iterable[str]) -> str:
    settings: dict[str, str] = {}
    for text in texts:
        for setting in filter(None, text.split(":")):
            settings[setting.partition("=")[0]] = setting
    return ":".join(settings.values())


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))
