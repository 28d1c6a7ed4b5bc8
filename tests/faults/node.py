"""The single node of a test's cluster: traces of pods on the machine, and the daemons' processes."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cluster import ROOT, Cluster, directories, kill, run  # noqa: E402

__all__ = ["Cluster", "Node", "kill", "run"]


class Node:
    def __init__(self, cluster):
        self.cluster = cluster
        self.dir = cluster.state / "nodes/node1"
        self.pods = self.dir / "kubelet/pods"
        self._starting = []

    # ---- traces of pods ----
    def ctr(self, *args):
        return run(["ctr", "--address", self.dir / "run/containerd.sock", "-n", "k8s.io", *args]).stdout.splitlines()

    def cgroups(self):
        pods = pathlib.Path(f"keelson-{self.cluster.id}", "node1", "kubepods")
        return {path.name for hierarchy in ("/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory")
                for path in directories(pathlib.Path(hierarchy, pods), "pod*")}

    def mounts(self):
        """All mounts below the node's directory: volumes, sandboxes' network namespaces, root file systems."""
        lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        return {point for point in (line.split()[4] for line in lines) if point.startswith(str(self.dir))}

    def rules(self):
        """The rules of host ports."""
        listed = run(self.cluster.inside(["nft", "-a", "list", "table", "inet", "keelson-portmap"]), check=False).stdout
        return {line.strip() for line in listed.splitlines() if "dnat" in line or " : " in line}

    def everything(self):
        """All traces of pods, by kind."""
        def names(path):
            return {entry.name for entry in path.iterdir()} if path.is_dir() else set()

        links = json.loads(run(self.cluster.inside(["ip", "-j", "link"])).stdout)
        return {"container": set(self.ctr("containers", "ls", "-q")), "process": set(self.ctr("tasks", "ls", "-q")),
                "snapshot": {line.split()[0] for line in self.ctr("snapshots", "ls")},
                "mount": self.mounts(), "cgroup": self.cgroups(), "directory": names(self.pods),
                "logs": names(self.dir / "pod-logs"), "hostPort rule": self.rules(),
                "link": {link["ifname"] for link in links},
                "address": {name for _, _, files in os.walk(self.dir / "run/cni") for name in files if name[0].isdigit()}}

    def more_than(self, before):
        """The traces that were not in `before`, as text."""
        return sorted(f"{kind} {name}" for kind, names in self.everything().items() for name in names - before[kind])

    def await_no_more_than(self, before, seconds=60):
        end = time.monotonic() + seconds
        while (more := self.more_than(before)) and time.monotonic() < end:
            time.sleep(0.5)
        return more

    def tell_of(self, names):
        """Diagnostics for a failure: the pods in the API, the end of the kubelet's log, and the runtime's log."""
        pods = {pod["metadata"]["name"]: pod for pod in self.cluster.get("pods")["items"]}
        said = [f"{name}: {json.dumps(pods[name]['status']) if name in pods else 'gone'}" for name in names]
        lines = (self.dir / "log/kubelet.log").read_text(errors="replace").splitlines()
        told = [line for line in lines if any(name in line for name in names)]
        runtime = (self.dir / "log/containerd.log").read_text(errors="replace").splitlines()
        ids = {id for line in runtime if any(f"Name:{name}," in line for name in names) for id in re.findall(r"[0-9a-f]{64}", line)}
        ids |= {id for line in runtime if any(id in line for id in ids) for id in re.findall(r"[0-9a-f]{64}", line)}  # their containers
        did = [line for line in runtime if any(id in line for id in ids) or any(f"Name:{name}," in line for name in names)]
        return "\n".join([*said, *told[-60:], "the log's end:", *lines[-20:], "the runtime:", *did[-200:]])

    # ---- daemons ----
    def start(self, daemon):
        """Returns the new process's PID immediately; Cluster.dev("start") would wait until it is healthy."""
        file = self.dir / f"run/{daemon}.pid"
        before = file.read_text()
        starter = subprocess.Popen(self.cluster.inside([ROOT / "dev", "start", daemon]), env=self.cluster.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._starting.append(starter)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            ended = starter.poll() is not None
            if (now := file.read_text()) != before and len(now.split()) == 2:
                return int(now.split()[0])
            if ended:
                break
            time.sleep(0.005)
        starter.kill()
        raise AssertionError(f"{daemon} was not started, {file} has {file.read_text()!r} after {before!r}: {starter.communicate()[0]}")

    def await_starters(self):
        """Waits for all starters; those whose daemon was killed meanwhile have failed, as expected."""
        for starter in self._starting:
            starter.communicate(timeout=90)
        self._starting.clear()
