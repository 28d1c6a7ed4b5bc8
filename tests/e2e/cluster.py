"""A cluster for tests: ./dev up in a network namespace, with its own state directory and cgroups.

The namespace has a veth pair of its own and no way out, so any number of clusters and a developer's own
run side by side, and nothing that a test does reaches the machine's network. It is the node of a cluster
with one node; that of several has its nodes' bridge in it.
"""
import fnmatch
import hashlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODE_IP = "192.168.77.1"  # the first node's
HOST_IP = "192.168.76.1"  # the outer namespace, with several nodes


def run(args, check=True, **kwargs):
    result = subprocess.run(args, capture_output=True, text=True, **kwargs)
    if check and result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, args))} -> {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def directories(top, pattern):
    """Returns the matching directories below `top`. Unlike pathlib's globs it tolerates concurrent changes (cgroups)."""
    return [pathlib.Path(at, name) for at, names, _ in os.walk(top) for name in fnmatch.filter(names, pattern)]


def kill(pid):
    """Sends SIGKILL, and returns when the process is gone."""
    process = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [], 20)
    finally:
        os.close(process)


class Cluster:
    """`nodes`: their number, each in its own namespaces; None: a single node in the outer namespace. `control_planes`: how
    many of them run the control plane."""

    def __init__(self, nodes=None, control_planes=1, **settings):
        self.name = f"keelson-e2e-{os.getpid()}"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="keelson-e2e-"))
        self.state = self.dir / "state"
        self.id = hashlib.sha256(str(self.state).encode()).hexdigest()[:8]  # as in tools/dev/common.sh
        self.nodes = [f"node{i + 1}" for i in range(nodes or 1)]
        self._several = nodes is not None
        self._control_planes = control_planes
        self.env = dict(os.environ, KEELSON_DIR=str(self.state), KEELSON_DEMO="no", **settings)
        if self._several:
            self.env["KEELSON_NODE_SUBNET"] = "192.168.77.0/24"
        else:
            self.env["KEELSON_NODE_IP"] = NODE_IP
        self._kubectl = None
        self._before = set()

    # ---- life ----
    def up(self):
        run(["ip", "netns", "add", self.name])
        address = HOST_IP if self._several else NODE_IP
        for command in (["link", "set", "lo", "up"], ["link", "add", "uplink0", "type", "veth", "peer", "name", "uplink1"],
                        ["addr", "add", f"{address}/24", "dev", "uplink0"], ["link", "set", "uplink0", "up"],
                        ["link", "set", "uplink1", "up"], ["route", "add", "default", "dev", "uplink0"]):
            run(["ip", "-n", self.name, *command])
        self._before = self.traces()
        self.dev("up", *(["--nodes", len(self.nodes)] if self._several else []),
                 *(["--control-planes", self._control_planes] if self._control_planes > 1 else []))

    def down(self):
        result = self.dev("down", check=False)
        left = self.left_behind() if self._before else set()
        run(["ip", "netns", "delete", self.name], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)
        assert result.returncode == 0, result.stdout + result.stderr
        assert not left, f"./dev down left behind: {sorted(left)}"

    def left_behind(self, seconds=20):
        """The kernel removes a pod's namespace, and the veth on the node with it, some time after the last user is gone."""
        end = time.monotonic() + seconds
        while (left := self.traces() - self._before) and time.monotonic() < end:
            time.sleep(0.2)
        return left

    def traces(self):
        """Everything of the cluster on the machine."""
        places = [*directories("/sys/fs/cgroup", f"keelson-{self.id}"), *pathlib.Path("/run/netns").glob(f"keelson-{self.id}-*")]
        mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
        links = json.loads(run(self.inside(["ip", "-j", "link"])).stdout)
        tables = run(self.inside(["nft", "list", "tables"])).stdout.splitlines()
        return {*map(str, places), *(m for m in mounts if m.startswith(str(self.dir))), *(link["ifname"] for link in links), *tables}

    def inside(self, args):
        """Uses nsenter, because `ip netns exec` remounts /sys and hides the cgroups."""
        return ["nsenter", f"--net=/run/netns/{self.name}", *map(str, args)]

    def dev(self, *args, check=True, stdin=None, **settings):
        return run(self.inside([ROOT / "dev", *args]), check=check, input=stdin, env=dict(self.env, **settings))

    def pid(self, daemon, node="node1"):
        return int((self.state / "nodes" / node / "run" / f"{daemon}.pid").read_text().split()[0])

    def kill(self, daemon, node="node1"):
        kill(self.pid(daemon, node))

    # ---- places ----
    def on_node(self, node, args):
        """Runs the command in the node's network."""
        netns = f"keelson-{self.id}-{node}" if self._several else self.name
        return ["nsenter", f"--net=/run/netns/{netns}", *map(str, args)]

    def in_pod(self, pod, args):
        """Runs a program of the machine in the pod's network."""
        return ["nsenter", f"--net=/proc/{self.pod_processes(pod)[0]}/ns/net", *map(str, args)]

    def pod_processes(self, pod):
        """`pod`: a Pod object, or the name of one."""
        pod = self.get("pod", pod) if isinstance(pod, str) else pod
        pods = pathlib.Path(f"keelson-{self.id}", pod["spec"]["nodeName"], "kubepods")
        for hierarchy in ("/sys/fs/cgroup", "/sys/fs/cgroup/pids"):
            files = [path / "cgroup.procs" for of_pod in directories(pathlib.Path(hierarchy, pods), f"pod{pod['metadata']['uid']}")
                     for path in directories(of_pod, "*")]
            processes = [int(pid) for file in files if file.exists() for pid in file.read_text().split()]
            if processes:
                return processes
        return []

    # ---- kubectl ----
    def kubectl_args(self, *args):
        if self._kubectl is None:
            found = shutil.which("kubectl")
            self._kubectl = found or str(pathlib.Path.home() / ".cache/keelson/kubectl/usr/bin/kubectl")
            self.env["KUBECONFIG"] = str(self.state / "conf/admin.kubeconfig")
        return self.inside([self._kubectl, *args])

    def kubectl(self, *args, check=True, stdin=None, timeout=120):
        return run(self.kubectl_args(*args), check=check, env=self.env, input=stdin, timeout=timeout)

    def start_kubectl(self, *args, **kwargs):
        """Starts a kubectl that keeps running: the caller ends it."""
        self.kubectl_args()
        return subprocess.Popen(self.kubectl_args(*args), env=self.env, text=True, **kwargs)

    def apply(self, manifest):
        return self.kubectl("apply", "-f", "-", stdin=manifest).stdout

    def get(self, *args):
        return json.loads(self.kubectl("get", *args, "-o", "json").stdout)

    def jsonpath(self, path, *args):
        return self.kubectl("get", *args, "-o", f"jsonpath={{{path}}}").stdout

    # ---- traffic and waiting ----
    def fetch(self, url, check=True, timeout=2):
        return run(self.inside(["curl", "-fsS", "-m", timeout, url]), check=check).stdout

    def fetch_from(self, place, url, timeout=2):
        """`place`: a node's name, or a pod's."""
        command = ["curl", "-fsS", "-m", timeout, url]
        return run(self.on_node(place, command) if place in self.nodes else self.in_pod(place, command)).stdout

    def eventually(self, what, condition, seconds=60):
        """Polls `condition` until it returns a true value; the error contains the last failure."""
        end, last = time.monotonic() + seconds, None
        while time.monotonic() < end:
            try:
                value = condition()
                if value:
                    return value
                last = value
            except (AssertionError, KeyError, IndexError, ValueError) as error:
                last = error
            time.sleep(0.2)
        raise AssertionError(f"not within {seconds} s: {what}; last: {last}")
