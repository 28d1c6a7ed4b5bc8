"""Measures the cluster that ./dev up started: memory of each daemon, and pod start-up beside bare CRI calls.

usage: cluster_bench.py STATE_DIR BUILD_DIR [PODS]      (called by ./dev bench cluster)

Prints tables; the last line is one JSON object. Client and servers share the machine's cores: read ratios.
"""
import base64
import http.client
import json
import os
import pathlib
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time

DAEMONS = ["containerd", "kube-controlplane", "kubelet", "kube-proxy", "kube-cni"]
IMAGE = "registry.k8s.io/pause:3.10"
NAMESPACE = "keelson-bench"


class Api:
    """Just enough of a client: one connection a call site, JSON, client certificate from the kubeconfig."""

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

    def connect(self):
        return http.client.HTTPSConnection(self.host, context=self.context, timeout=60)

    def call(self, method, path, body=None, connection=None):
        connection = connection or self.connect()
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        response = connection.getresponse()
        data = response.read()
        if response.status >= 300 and response.status != 404:
            raise RuntimeError(f"{method} {path}: {response.status} {data[:300]}")
        return json.loads(data)


class ReadyWatch(threading.Thread):
    """Notes when each pod of the namespace is first seen Ready, as a watch shows it."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.ready, self.gone, self.changed = {}, {}, threading.Condition()
        connection = api.connect()
        connection.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?watch=true")
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


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": IMAGE}]}}


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(p / 100 * (len(ordered) - 1)))]


def summarise(values):
    return {"p50": round(statistics.median(values), 1), "p99": round(percentile(values, 99), 1), "n": len(values)}


def bare_cri(node, build, count, *flags):
    """What the runtime alone takes for the same pods, in milliseconds: {"start": [...], "stop": [...]}."""
    with tempfile.TemporaryDirectory(prefix="bare-cri-") as logs:
        printed = subprocess.run([build / "bench-tools/cri_pods", "--endpoint", f"unix://{node}/run/containerd.sock", "--image", IMAGE,
                                  "--log-dir", logs, "--cgroup-parent", "/bare-cri", "--pods", str(count), *flags],
                                 capture_output=True, text=True, check=True).stdout
    steps = {"start": [], "stop": []}
    for line in printed.splitlines():
        step, milliseconds = line.split()
        steps[step].append(float(milliseconds))
    return steps


def main():
    state, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    node = state / "nodes/node1"
    api = Api(state / "conf/admin.kubeconfig")
    result = {"cores": os.cpu_count(), "pods": count}
    running = pids(node)
    result["memory_idle"] = {name: memory(pid) for name, pid in running.items()}

    api.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    try:
        deadline = time.monotonic() + 30
        while "uid" not in api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default").get("metadata", {}):
            if time.monotonic() > deadline:
                raise RuntimeError("no default ServiceAccount")
            time.sleep(0.1)
        watch = ReadyWatch(api)
        watch.start()
        connection, path = api.connect(), f"/api/v1/namespaces/{NAMESPACE}/pods"
        api.call("POST", path, pod("first"), connection)  # opens connections, makes cgroups
        watch.await_in(watch.ready, ["first"])
        latency = []
        for i in range(count):
            begin = time.monotonic()
            api.call("POST", path, pod(f"one-{i}"), connection)
            latency.append((watch.await_in(watch.ready, [f"one-{i}"])[0] - begin) * 1000)
        result["create_to_ready_ms"] = summarise(latency)
        result["memory_loaded"] = {name: memory(pid) for name, pid in running.items()}
        gone = []
        for i in range(count):
            begin = time.monotonic()
            api.call("DELETE", f"{path}/one-{i}", None, connection)
            gone.append((watch.await_in(watch.gone, [f"one-{i}"])[0] - begin) * 1000)
        result["delete_to_gone_ms"] = summarise(gone)
        begin = time.monotonic()
        for i in range(count):
            api.call("POST", path, pod(f"burst-{i}"), connection)
        result["burst_pods_per_s"] = round(count / (max(watch.await_in(watch.ready, [f"burst-{i}" for i in range(count)])) - begin), 2)
    finally:
        api.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    bare_cri(node, build, 1)  # the first one makes cgroups
    bare = bare_cri(node, build, count)
    result["bare_cri_start_ms"], result["bare_cri_stop_ms"] = summarise(bare["start"]), summarise(bare["stop"])
    result["bare_burst_pods_per_s"] = round(count / max(bare_cri(node, build, count, "--at-once")["start"]) * 1000, 2)
    report(result)


def report(result):
    print(f"cores: {result['cores']}\n\n{'daemon':<20}{'idle USS':>10}{'anon':>8}   {result['pods']} pods USS{'anon':>8}   MiB")
    for name, (uss, anon) in result["memory_idle"].items():
        loaded = result["memory_loaded"][name]
        print(f"{name:<20}{uss:>10.1f}{anon:>8.1f}{loaded[0]:>14.1f}{loaded[1]:>8.1f}")
    print()
    for key in ("create_to_ready_ms", "bare_cri_start_ms", "delete_to_gone_ms", "bare_cri_stop_ms"):
        print(f"{key:<20} p50 {result[key]['p50']:>8.1f}   p99 {result[key]['p99']:>8.1f}")
    print(f"{'burst':<20} {result['burst_pods_per_s']} pods/s, bare CRI {result['bare_burst_pods_per_s']}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
