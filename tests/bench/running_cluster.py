"""Shared by benchmarks of a running cluster: API client, pod watch, the daemons' memory and CPU, bare CRI calls."""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import ssl
import statistics
import subprocess
import tempfile
import threading
import time

DAEMONS = ["containerd", "kube-controlplane", "kubelet", "kube-proxy", "kube-cni", "keelson-csi-local", "keelson-csi-controller"]
IMAGE = "registry.k8s.io/pause:3.10"


class Api:
    """A minimal client: one connection per call site, JSON, client certificate from the kubeconfig."""

    def __init__(self, kubeconfig):
        text = pathlib.Path(kubeconfig).read_text()

        def field(name):
            return re.search(rf"{name}: (\S+)", text).group(1)

        self.host = field("server").removeprefix("https://")
        self.context = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
        with tempfile.NamedTemporaryFile() as pem:
            pem.write(base64.b64decode(field("client-certificate-data")) + base64.b64decode(field("client-key-data")))
            pem.flush()
            self.context.load_cert_chain(pem.name)

    def connect(self, timeout=60):
        return http.client.HTTPSConnection(self.host, context=self.context, timeout=timeout)

    def call(self, method, path, body=None, connection=None):
        connection = connection or self.connect()
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        response = connection.getresponse()
        data = response.read()
        if response.status >= 300 and response.status != 404:
            raise RuntimeError(f"{method} {path}: {response.status} {data[:300]}")
        return json.loads(data)


class ReadyWatch(threading.Thread):
    """Records when a watch first shows each pod of the namespace as Ready."""

    def __init__(self, api, namespace):
        super().__init__(daemon=True)
        self.ready, self.gone, self.changed = {}, {}, threading.Condition()
        connection = api.connect(timeout=None)  # idle pods cause no events
        connection.request("GET", f"/api/v1/namespaces/{namespace}/pods?watch=true")
        self.response = connection.getresponse()

    def run(self):
        try:
            for line in self.response:
                event = json.loads(line)
                pod, now = event["object"], time.monotonic()
                ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))
                with self.changed:
                    if event["type"] == "DELETED":
                        self.gone.setdefault(pod["metadata"]["name"], now)
                    elif ready:
                        self.ready.setdefault(pod["metadata"]["name"], now)
                    self.changed.notify_all()
        except (OSError, ValueError, http.client.HTTPException):
            pass

    def await_in(self, table, names, seconds=120):
        with self.changed:
            if not self.changed.wait_for(lambda: all(n in table for n in names), seconds):
                raise RuntimeError(f"not within {seconds} s: {[n for n in names if n not in table]}")
        return [table[n] for n in names]


def memory(pid):
    """USS (private pages) and anonymous memory in MiB."""
    values = dict(re.findall(r"^(\w+): +(\d+) kB", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M))
    return ((int(values["Private_Clean"]) + int(values["Private_Dirty"])) / 1024, int(values["Anonymous"]) / 1024)


def pids(node):
    files = {d: node / "run" / f"{d}.pid" for d in DAEMONS}
    found = {d: int(file.read_text().split()[0]) for d, file in files.items() if file.exists()}
    for children in pathlib.Path(f"/proc/{found['kube-controlplane']}/task").glob("*/children"):
        for child in children.read_text().split():
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "etcd":
                found["etcd"] = int(child)
    return found


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": IMAGE}]}}


@contextlib.contextmanager
def namespace(api, name):
    api.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        deadline = time.monotonic() + 30
        while "uid" not in api.call("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default").get("metadata", {}):
            if time.monotonic() > deadline:
                raise RuntimeError("no default ServiceAccount")
            time.sleep(0.1)
        yield
    finally:
        api.call("DELETE", f"/api/v1/namespaces/{name}")
        while api.call("GET", f"/api/v1/namespaces/{name}").get("kind") == "Namespace":  # keep it out of the next measurement
            time.sleep(0.2)


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(p / 100 * (len(ordered) - 1)))]


def summarise(values):
    return {"p50": round(statistics.median(values), 1), "p99": round(percentile(values, 99), 1), "n": len(values)}


def bare_cri(node, build, count, *flags):
    """The time of the runtime alone for the same pods, in milliseconds: {"start": [...], "stop": [...]}."""
    with tempfile.TemporaryDirectory(prefix="bare-cri-") as logs:
        printed = subprocess.run([build / "bench-tools/cri_pods", "--endpoint", f"unix://{node}/run/containerd.sock", "--image", IMAGE,
                                  "--log-dir", logs, "--cgroup-parent", "/bare-cri", "--pods", str(count), *flags],
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
    steps = {"start": [], "stop": []}
    for line in printed.splitlines():
        step, milliseconds = line.split()
        steps[step].append(float(milliseconds))
    return steps
