"""A SLURM cluster of this one machine, for `tools.slurm_faults`: munged, slurmctld, three slurmd.

With accounting there are slurmdbd and MariaDB as well. Everything is written below one folder,
which must belong to root, and every process is ended with the cluster.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

NODES = ("n1", "n2", "n3")
PACKAGES = ("slurm-wlm", "munge", "slurmdbd", "mariadb-server")
_PROGRAMS = ("slurmctld", "slurmd", "munged", "slurmdbd", "mariadbd", "mariadb-install-db")
_SBIN = ("/usr/sbin", "/sbin")


def install() -> str:
    """Debian's packages, where they are missing; what is in the way, or nothing."""
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *_SBIN])
    if os.geteuid() != 0:
        return "a cluster needs root: its daemons start processes for others"
    if all(map(shutil.which, _PROGRAMS)):
        return ""
    if shutil.which("apt-get") is None:
        return f"finds no {', '.join(p for p in _PROGRAMS if shutil.which(p) is None)}"
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(["apt-get", "-q", *words], env=quiet, check=False)
        if done.returncode:
            return f"apt-get {words[0]} failed"
    return ""


class Cluster:
    """The daemons, each a process of ours in the foreground."""

    def __init__(self, folder: Path, *, accounting: bool) -> None:
        self.folder, self.accounting = folder, accounting
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self._ports = dict(zip(("slurmctld", "dbd", "sql", *NODES), _free_ports(6), strict=True))

    def __enter__(self) -> Cluster:
        try:
            self._begin()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def command(self, *words: str) -> str:
        """What a command of SLURM prints."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def start(self, name: str) -> None:
        """A daemon, also one that was killed."""
        words = [name, "-D"] if name in ("slurmctld", "slurmdbd") else ["slurmd", "-D", "-N", name]
        self._popen(name, *words)

    def kill(self, name: str) -> None:
        """kill -9 of a daemon; what it has started goes on."""
        self.processes[name].kill()
        self.processes[name].wait()

    def running(self) -> list[str]:
        """The jobs that run now."""
        return self.command("squeue", "--noheader", "--states=R", "--format=%i").split()

    def job_processes(self, node: str = "") -> list[psutil.Process]:
        """What computes on the cluster now, or on one of its nodes."""
        return [
            process
            for process in self._ours()
            if "SLURM_JOB_ID" in _environment(process)
            and node in ("", _environment(process).get("SLURMD_NODENAME"))
        ]

    def state_of(self, node: str) -> str:
        """Such as "idle" or "down*"."""
        return self.command("sinfo", "-h", "-n", node, "-o", "%T").strip()

    def kill_steps(self, node: str) -> None:
        """What stands between a slurmd and the processes of its jobs, on one node."""
        for process in self._ours():
            if process.name() == "slurmstepd" and _holds(process, f"{self.folder}/slurmd-{node}."):
                process.kill()

    def end(self) -> None:
        """End every process that has this cluster's configuration."""
        for name in reversed(self.processes):
            self.processes[name].terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for process in self._ours():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _ours(self) -> list[psutil.Process]:
        """What has our configuration; slurmstepd writes its title over that, but holds its log."""
        conf = self.environment["SLURM_CONF"]
        return [
            process
            for process in psutil.process_iter()
            if process.pid != os.getpid()
            and (_environment(process).get("SLURM_CONF") == conf or self._is_step(process))
        ]

    def _is_step(self, process: psutil.Process) -> bool:
        return process.name() == "slurmstepd" and _holds(process, f"{self.folder}/")

    def _begin(self) -> None:
        self._write_configuration()
        munge = self.folder / "munge"
        munge.mkdir(mode=0o755)
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o600)
        places = [f"--{kind}-file={munge / kind}" for kind in ("key", "pid", "log", "seed")]
        socket_path = self.folder / "munge" / "socket"
        self._popen("munged", "munged", "-F", "--force", f"--socket={socket_path}", *places)
        wait_until(socket_path.exists)
        if self.accounting:
            self._begin_accounting()
        self.start("slurmctld")
        wait_until(lambda: self._says("scontrol", "ping", text="UP"))
        for node in NODES:
            self.start(node)
        wait_until(lambda: self.command("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * 3)

    def _begin_accounting(self) -> None:
        data = self.folder / "mariadb"
        subprocess.run(
            [
                *("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root"),
                "--auth-root-authentication-method=normal",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self._popen(
            *("mariadbd", "mariadbd", "--no-defaults", f"--datadir={data}", "--user=root"),
            *(f"--socket={data / 'socket'}", "--bind-address=127.0.0.1"),
            *(f"--port={self._ports['sql']}", "--innodb-lock-wait-timeout=900"),
        )
        client = ["mariadb", "--no-defaults", f"--socket={data / 'socket'}", "-u", "root", "-e"]
        grant = "CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'slurm'; "
        grant += "GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';"
        wait_until(lambda: self._says(*client, "SELECT 1"))
        self.command(*client, grant)
        self.start("slurmdbd")
        wait_until(lambda: self._says("sacctmgr", "-n", "show", "cluster"))

    def _says(self, *words: str, text: str = "") -> bool:
        try:
            return text in self.command(*words)
        except (RuntimeError, subprocess.TimeoutExpired):
            return False

    def _popen(self, name: str, *words: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                words, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def _write_configuration(self) -> None:
        host, here = socket.gethostname().partition(".")[0], self.folder
        (here / "state").mkdir()
        storage = (
            f"slurmdbd\nAccountingStorageHost=127.0.0.1\n"
            f"AccountingStoragePort={self._ports['dbd']}\n"
            f"AccountingStoragePass={here}/munge/socket"
            if self.accounting
            else "none"
        )
        lines = [
            "ClusterName=headcount",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={self._ports['slurmctld']}",
            "SlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge",
            f"AuthInfo=socket={here}/munge/socket",
            f"StateSaveLocation={here}/state\nSlurmdSpoolDir={here}/spool-%n",
            f"SlurmctldPidFile={here}/slurmctld.pid\nSlurmdPidFile={here}/slurmd-%n.pid",
            f"SlurmctldLogFile={here}/slurmctld.log\nSlurmdLogFile={here}/slurmd-%n.log",
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none",
            "JobAcctGatherType=jobacct_gather/none\nSwitchType=switch/none",
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU",
            "SlurmdParameters=config_overrides\nSchedulerParameters=batch_sched_delay=1",
            "SlurmdTimeout=15\nKillWait=3\nReturnToService=1\nMessageTimeout=5",
            f"AccountingStorageType=accounting_storage/{storage}",
            *(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 "
                f"Port={self._ports[node]} CPUs=1 RealMemory=4000"
                for node in NODES
            ),
            f"PartitionName=main Nodes={','.join(NODES)} Default=YES MaxTime=60 State=UP",
        ]
        (here / "slurm.conf").write_text("\n".join(lines) + "\n")
        database = here / "slurmdbd.conf"
        database.write_text(
            "AuthType=auth/munge\nDbdHost=localhost\nDbdAddr=127.0.0.1\nSlurmUser=root\n"
            f"AuthInfo=socket={here}/munge/socket\nDbdPort={self._ports['dbd']}\n"
            f"LogFile={here}/slurmdbd.log\nPidFile={here}/slurmdbd.pid\n"
            "StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\n"
            f"StoragePort={self._ports['sql']}\nStorageUser=slurm\nStoragePass=slurm\n"
        )
        database.chmod(0o600)


def wait_until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    """Look again and again."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain")
        time.sleep(0.3)


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return dict(process.environ())
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return {}


def _holds(process: psutil.Process, start: str) -> bool:
    """Whether a process has a file open whose path starts so."""
    try:
        handles = list(Path(f"/proc/{process.pid}/fd").iterdir())
        return any(os.readlink(handle).startswith(start) for handle in handles)
    except OSError:
        return False


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports
