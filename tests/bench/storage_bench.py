"""Measures the storage of the cluster that ./dev up started: many claims, pods with a volume, a kubelet's restart, memory.

usage: storage_bench.py STATE_DIR DEV [CLAIMS] [PODS]      (called by ./dev bench storage; DEV: the ./dev script)

KEELSON_EXTERNAL_PROVISIONER names upstream's external-provisioner: it makes claims too, for comparison.
Prints tables; the last line is one JSON object. Client and servers share the machine's cores: read ratios.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

from running_cluster import Api, ReadyWatch, cpu_seconds, memory, namespace, pids, pod, summarise

NAMESPACE, NODE, CLASS = "keelson-bench", "node1", "local"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
VOLUMES = "/api/v1/persistentvolumes"
VOLUMES_A_POD, PODS_WITH_MANY = 10, 10
WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE"}


class BoundWatch(threading.Thread):
    """Records when a watch first shows each claim of the namespace as Bound."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.bound, self.changed = {}, threading.Condition()
        connection = api.connect(timeout=None)
        connection.request("GET", f"{CLAIMS}?watch=true")
        self.response = connection.getresponse()

    def run(self):
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            for line in self.response:
                claim, now = json.loads(line)["object"], time.monotonic()
                if claim.get("status", {}).get("phase") == "Bound":
                    with self.changed:
                        self.bound.setdefault(claim["metadata"]["name"], now)
                        self.changed.notify_all()

    def await_all(self, names, seconds=900):
        with self.changed:
            if not self.changed.wait_for(lambda: all(n in self.bound for n in names), seconds):
                raise RuntimeError(f"not bound within {seconds} s: {[n for n in names if n not in self.bound][:5]}")
        return max(self.bound[n] for n in names)


def claim(name):
    """Has the annotation by which the scheduler chooses the node, so no pod is part of the measurement."""
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "annotations": {"volume.kubernetes.io/selected-node": NODE}},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": CLASS, "resources": {"requests": {"storage": "16Mi"}}}}


def pod_with(name, claims):
    spec = pod(name)
    spec["spec"]["volumes"] = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(claims)]
    spec["spec"]["containers"][0]["volumeMounts"] = [{"name": f"v{i}", "mountPath": f"/v{i}"} for i in range(len(claims))]
    return spec


def text_of(api, path):
    connection = api.connect()
    connection.request("GET", path)
    return connection.getresponse().read().decode()


def samples(text, metric):
    """Yields (labels, value) of each series."""
    for labels, value in re.findall(rf"^{metric}\{{(.*?)\}} (\S+)$", text, re.M):
        yield dict(re.findall(r'(\w+)="(.*?)"', labels)), float(value)


def writes(api):
    """Successful writes so far, by resource."""
    out = {}
    for labels, value in samples(text_of(api, "/metrics"), "apiserver_request_total"):
        if labels["verb"] in WRITES and labels["code"].startswith("2"):
            resource = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            out[resource] = out.get(resource, 0) + value
    return out


def eventually(what, condition, seconds=300):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return value


class Bench:
    def __init__(self, state, dev):
        self.state, self.dev = state, dev
        self.node = state / "nodes" / NODE
        self.api = Api(state / "conf/admin.kubeconfig")
        self.connection = self.api.connect()

    def make(self, path, item):
        return self.api.call("POST", path, item, self.connection)

    def control(self, verb, daemon):
        subprocess.run([self.dev, verb, daemon, NODE], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "KEELSON_DIR": str(self.state)})

    def memory(self):
        return {name: [round(v, 1) for v in memory(pid)] for name, pid in pids(self.node).items()}

    def no_volumes(self):
        self.connection = self.api.connect()  # an idle one may have been closed
        self.api.call("DELETE", CLAIMS, None, self.connection)
        eventually("all volumes to be deleted", lambda: not self.api.call("GET", VOLUMES, None, self.connection)["items"], 900)

    # ---- claims ----
    def claims(self, count, prefix):
        """Makes the claims at once; returns the seconds until the last one is Bound, and what that took."""
        watch = BoundWatch(self.api)
        watch.start()
        before, processes = writes(self.api), pids(self.node)
        cpu = {name: cpu_seconds(pid) for name, pid in processes.items()}
        names, begin = [f"{prefix}-{i}" for i in range(count)], time.monotonic()
        for name in names:
            self.make(CLAIMS, claim(name))
        seconds = watch.await_all(names) - begin
        spent = {name: round(1000 * (cpu_seconds(pid) - cpu[name]) / count, 2) for name, pid in processes.items()}
        time.sleep(3)  # events and capacities come later
        done = {resource: round((value - before.get(resource, 0)) / count, 2) for resource, value in writes(self.api).items()}
        done = {resource: value for resource, value in done.items() if value >= 0.01}
        return {"seconds": round(seconds, 2), "claims_per_s": round(count / seconds, 1), "writes_a_claim": done, "cpu_ms_a_claim": spent}

    @contextlib.contextmanager
    def external_provisioner(self, program):
        """In place of keelson-csi-controller, with its defaults."""
        self.control("stop", "keelson-csi-controller")
        log = (self.node / "log/external-provisioner.log").open("w")
        process = subprocess.Popen(
            [program, f"--csi-address={self.node}/run/csi.sock", "--node-deployment=true", "--strict-topology=true",
             "--immediate-topology=false", f"--kubeconfig={self.state}/conf/keelson-csi-controller.kubeconfig"],
            env={**os.environ, "NODE_NAME": NODE, "NAMESPACE": "kube-system"}, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait()
            self.control("start", "keelson-csi-controller")

    # ---- pods ----
    def in_turn(self, count):
        """One pod without and one with a volume, in turn: the machine's speed changes from minute to minute. Milliseconds."""
        watch = ReadyWatch(self.api, NAMESPACE)
        watch.start()
        claims = [f"pod-{i}" for i in range(count + 1)]
        for name in claims:
            self.make(CLAIMS, claim(name))
        eventually("claims to be Bound", lambda: all(
            c["status"].get("phase") == "Bound" for c in self.api.call("GET", CLAIMS, None, self.connection)["items"]))
        times = {"without": [], "first use, mkfs": [], "with a volume": []}

        def start(kind, name, spec):
            begin = time.monotonic()
            self.make(PODS, spec)
            times[kind].append((watch.await_in(watch.ready, [name])[0] - begin) * 1000)
            self.api.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 1}, self.connection)
            watch.await_in(watch.gone, [name])

        for i, volume in enumerate(claims):
            start("without", f"plain-{i}", pod(f"plain-{i}"))
            start("first use, mkfs", f"first-{i}", pod_with(f"first-{i}", [volume]))
            start("with a volume", f"again-{i}", pod_with(f"again-{i}", [volume]))
        return {kind: summarise(values[1:]) for kind, values in times.items()}  # the first opens connections

    # ---- a kubelet's restart ----
    def mounted(self):
        """Volumes of the driver that the kubelet has."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            text = text_of(self.api, f"/api/v1/nodes/{NODE}/proxy/metrics")
            return sum(int(value) for labels, value in samples(text, "volume_manager_total_volumes")
                       if labels["plugin_name"] == "kubernetes.io/csi" and labels["state"] == "actual_state_of_world")
        return 0

    def restart(self, rounds):
        """Seconds from the start of a kubelet's process until it has all volumes again."""
        watch = ReadyWatch(self.api, NAMESPACE)
        watch.start()
        many = [[f"many-{p}-{v}" for v in range(VOLUMES_A_POD)] for p in range(PODS_WITH_MANY)]
        names = [f"many-{p}" for p in range(PODS_WITH_MANY)]
        for name, claims in zip(names, many):
            for one in claims:
                self.make(CLAIMS, claim(one))
            self.make(PODS, pod_with(name, claims))
        watch.await_in(watch.ready, names, 600)
        total, times, cpu = VOLUMES_A_POD * PODS_WITH_MANY, [], []
        for _ in range(rounds):
            driver = cpu_seconds(pids(self.node)["keelson-csi-local"])
            self.control("stop", "kubelet")
            starting = threading.Thread(target=self.control, args=("start", "kubelet"))
            starting.start()
            eventually("all volumes", lambda: self.mounted() == total, 120)
            now = time.clock_gettime(time.CLOCK_BOOTTIME)
            starting.join()
            fields = pathlib.Path(f"/proc/{pids(self.node)['kubelet']}/stat").read_text().rsplit(")", 1)[1].split()
            cpu.append([round(s, 2) for s in (cpu_seconds(pids(self.node)["kubelet"]), cpu_seconds(pids(self.node)["keelson-csi-local"]) - driver)])
            times.append(round(now - int(fields[19]) / os.sysconf("SC_CLK_TCK"), 2))
        memory_then = self.memory()
        self.connection = self.api.connect()
        self.api.call("DELETE", f"{PODS}", {"gracePeriodSeconds": 1}, self.connection)
        watch.await_in(watch.gone, names, 600)
        return {"volumes": total, "seconds": times, "cpu_s": cpu}, memory_then


def main():
    state, dev = pathlib.Path(sys.argv[1]), sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 500
    pods = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    bench, result = Bench(state, dev), {"cores": os.cpu_count(), "claims": count}
    result["memory_idle"] = bench.memory()
    with namespace(bench.api, NAMESPACE):
        bench.claims(10, "warm")
        bench.no_volumes()
        result["provision"] = {"keelson-csi-controller": bench.claims(count, "many")}
        result["memory_claims"] = bench.memory()
        begin = time.monotonic()
        bench.no_volumes()
        result["delete_s"] = round(time.monotonic() - begin, 1)
        other = os.environ.get("KEELSON_EXTERNAL_PROVISIONER")
        if other:
            with bench.external_provisioner(other):
                result["provision"]["external-provisioner"] = bench.claims(count, "other")
                bench.no_volumes()
        result["pod_ms"] = bench.in_turn(pods)
        bench.no_volumes()
        result["restart"], result["memory_volumes"] = bench.restart(5)
        bench.no_volumes()
    report(result)


def report(result):
    print(f"{result['cores']} cores, {result['claims']} claims")
    for who, one in result["provision"].items():
        print(f"{who:<24}{one['seconds']:>8.1f} s {one['claims_per_s']:>8.1f} claims/s")
        print("  writes a claim: ", one["writes_a_claim"])
        print("  CPU ms a claim: ", one["cpu_ms_a_claim"])
    if "external-provisioner" not in result["provision"]:
        print("external-provisioner: not given (KEELSON_EXTERNAL_PROVISIONER)")
    for kind, times in result["pod_ms"].items():
        print(f"pod, {kind:<18} p50 {times['p50']:>8.1f} ms   p99 {times['p99']:>8.1f} ms")
    print(f"a kubelet's restart with {result['restart']['volumes']} volumes: {result['restart']['seconds']} s; "
          f"CPU of kubelet and driver {result['restart']['cpu_s']} s")
    for when in ("idle", "claims", "volumes"):
        print(f"USS / anon, MiB, {when:<8}", {k: v for k, v in result[f"memory_{when}"].items() if "csi" in k or k == "kubelet"})
    print(json.dumps(result))


if __name__ == "__main__":
    main()
