"""A Slurm of our own on the loopback: a controller and two nodes on this machine, ended by their process ids."""

import contextlib
import getpass
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

STARTS_S = 40.0
_PROGRAMS = ("munged", "slurmctld", "slurmd")
NODES = ("n1", "n2")


def program(name: str) -> str | None:
    return next((f"{folder}/{name}" for folder in ("/usr/sbin", "/usr/bin") if Path(folder, name).is_file()), None)


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.1)


class Slurm:
    """Raises OSError where it cannot start."""

    def __init__(self, folder: Path) -> None:
        absent = [name for name in _PROGRAMS if program(name) is None]
        if absent:
            raise OSError(f"{', '.join(absent)} not installed")
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self.environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "log", "munge", *NODES):
            (folder / name).mkdir()
        (folder / "munge").chmod(0o700)
        key = folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        self.conf.write_text(self._configuration())
        try:
            self._start("munged", "--foreground", "--force", *self._munge())
            self._until((folder / "munge" / "socket").exists, "munged")
            self.start_controller()
            for node in NODES:
                self.start_node(node)
            self._until(lambda: self._idle() == len(NODES), "the nodes")
        except BaseException:
            self.stop()
            raise

    def _munge(self) -> list[str]:
        place = self.folder / "munge"
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        return [f"--{option}={place / name}" for option, name in files.items()]

    def _configuration(self) -> str:
        ports = []
        with contextlib.ExitStack() as open_until_all_are_chosen:
            for _ in range(3):
                one = open_until_all_are_chosen.enter_context(socket.socket())
                one.bind(("127.0.0.1", 0))
                ports.append(one.getsockname()[1])
        user, here = getpass.getuser(), self.folder
        settings = {
            "ClusterName": "tests",
            "SlurmctldHost": "localhost(127.0.0.1)",
            "SlurmctldPort": ports[0],
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={here}/munge/socket,cred_expire=10",  # a shard of a dead node waits as long
            "CredType": "cred/munge",
            "SlurmUser": user,
            "SlurmdUser": user,
            "StateSaveLocation": here / "state",
            "SlurmdSpoolDir": here / "%n",
            "SlurmctldPidFile": here / "slurmctld.pid",
            "SlurmdPidFile": here / "%n.pid",
            "SlurmctldLogFile": here / "log" / "slurmctld",
            "SlurmdLogFile": here / "log" / "%n",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "AccountingStorageType": "accounting_storage/none",
            "SelectType": "select/cons_tres",
            "SchedulerParameters": "sched_interval=1,batch_sched_delay=0",
            "ReturnToService": 2,
            "MaxArraySize": 4,
            "KillWait": 2,
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        for node, port in zip(NODES, ports[1:], strict=True):
            lines.append(f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1")
        return "\n".join([*lines, "PartitionName=all Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP"]) + "\n"

    def _start(self, name: str, *arguments: object, key: str | None = None) -> None:
        with (self.folder / "log" / f"{key or name}.out").open("ab") as log:
            self._running[key or name] = subprocess.Popen(
                [str(program(name)), *map(str, arguments)], env=self.environment, stdout=log, stderr=log
            )

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + STARTS_S
        while not condition():
            dead = [name for name, process in self._running.items() if process.poll() is not None]
            if dead or time.monotonic() > end:
                raise OSError(f"{', '.join(dead) or what} did not start; {self.folder / 'log'} says why")
            time.sleep(0.1)

    def _idle(self) -> int:
        done = self.run("sinfo", "--noheader", "--Node", "--format=%T")
        return done.stdout.split().count("idle")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                command, env=self.environment, capture_output=True, text=True, timeout=STARTS_S, check=False
            )
        except subprocess.TimeoutExpired:  # it asks again and again where nobody listens yet
            return subprocess.CompletedProcess(command, 124, "", "no answer")

    def start_controller(self) -> None:
        self._start("slurmctld", "-D", "-f", self.conf)

    def start_node(self, node: str) -> None:
        self._start("slurmd", "-D", "-f", self.conf, "-N", node, key=node)

    def kill_controller(self) -> None:
        """Once it has saved what it was told last."""
        saved, now = self.folder / "state" / "job_state", time.time()
        job = self.run("squeue", "--noheader", "--format=%A").stdout.split()[0]
        self.run("scontrol", "update", f"jobid={job}", "comment=a change is what it saves")
        wait_for(lambda: saved.is_file() and saved.stat().st_mtime > now, "the controller saves its state")
        self._kill("slurmctld")

    def kill_node(self, node: str) -> None:
        """As a machine that loses power, and the controller that has noticed."""
        jobs = self.processes_on(node)
        self._kill(node)
        for pid in jobs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=killed")

    def revive(self) -> None:
        """Both nodes up and idle, nothing queued."""
        self.run("scancel", f"--user={getpass.getuser()}")
        for node in NODES:
            if self._running[node].poll() is not None:
                self.start_node(node)
            self.run("scontrol", "update", f"nodename={node}", "state=resume")
        wait_for(lambda: self._idle() == len(NODES), "both nodes idle")

    def _kill(self, name: str) -> None:
        self._running[name].kill()
        self._running[name].wait()

    def processes_on(self, node: str) -> list[int]:
        """Processes of jobs on the node, which Slurm told its name and our configuration, and what they started."""
        wanted = {f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={self.conf}".encode()}
        parents, found = {}, set()
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                pid = int(path.name)
                parents[pid] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                if wanted <= set((path / "environ").read_bytes().split(b"\0")):
                    found.add(pid)
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        # Their keepers first, who would report that they were killed: a machine without power reports nothing.
        keepers = {parents[pid] for pid in found if self._is_keeper(parents[pid])}
        return [*keepers, *sorted(found)]

    @staticmethod
    def _is_keeper(pid: int) -> bool:
        with contextlib.suppress(OSError):
            return b"slurmstepd" in Path(f"/proc/{pid}/cmdline").read_bytes()
        return False

    def stop(self) -> None:
        for name in ("slurmctld", *NODES, "munged"):
            if (process := self._running.get(name)) is not None and process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        for node in NODES:
            for pid in self.processes_on(node):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
