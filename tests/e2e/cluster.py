"""A cluster for tests: ./dev up in a network namespace, with its own state directory and cgroups.

The namespace has a veth pair of its own and no way out, so any number of clusters and a developer's own
run side by side, and nothing that a test does reaches the machine's network.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODE_IP = "192.168.77.1"


def run(args, check=True, **kwargs):
    result = subprocess.run(args, capture_output=True, text=True, **kwargs)
    if check and result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, args))} -> {result.returncode}\n{result.stdout}{result.stderr}")
    return result


class Cluster:
    def __init__(self):
        self.name = f"keelson-e2e-{os.getpid()}"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="keelson-e2e-"))
        self.env = dict(os.environ, KEELSON_DIR=str(self.dir / "state"), KEELSON_NODE_IP=NODE_IP, KEELSON_DEMO="no")
        self._kubectl = None

    # ---- life ----
    def up(self):
        run(["ip", "netns", "add", self.name])
        for command in (["link", "set", "lo", "up"], ["link", "add", "uplink0", "type", "veth", "peer", "name", "uplink1"],
                        ["addr", "add", f"{NODE_IP}/24", "dev", "uplink0"], ["link", "set", "uplink0", "up"],
                        ["link", "set", "uplink1", "up"], ["route", "add", "default", "dev", "uplink0"]):
            run(["ip", "-n", self.name, *command])
        self.dev("up")

    def down(self):
        result = self.dev("down", check=False)
        run(["ip", "netns", "delete", self.name], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)
        assert result.returncode == 0, result.stdout + result.stderr

    def inside(self, args):
        """nsenter and not `ip netns exec`, which remounts /sys and hides the cgroups."""
        return ["nsenter", f"--net=/run/netns/{self.name}", *map(str, args)]

    def dev(self, *args, check=True):
        return run(self.inside([ROOT / "dev", *args]), check=check, env=self.env)

    def pid(self, daemon):
        return int((self.dir / "state/run" / f"{daemon}.pid").read_text().split()[0])

    def log(self, daemon):
        return (self.dir / "state/log" / f"{daemon}.log").read_text(errors="replace")

    # ---- kubectl ----
    def kubectl_args(self, *args):
        if self._kubectl is None:
            found = shutil.which("kubectl")
            self._kubectl = found or str(pathlib.Path.home() / ".cache/keelson/kubectl/usr/bin/kubectl")
            self.env["KUBECONFIG"] = str(self.dir / "state/conf/admin.kubeconfig")
        return self.inside([self._kubectl, *args])

    def kubectl(self, *args, check=True, stdin=None, timeout=120):
        return run(self.kubectl_args(*args), check=check, env=self.env, input=stdin, timeout=timeout)

    def start_kubectl(self, *args, **kwargs):
        """A kubectl that goes on: the caller ends it."""
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

    def eventually(self, what, condition, seconds=60):
        """Repeats `condition` until it returns something true; the last failure is in the error."""
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
