"""Measures the kubelet of the cluster that ./dev up started: many pods at once beside bare CRI calls, at rest, and with probes.

usage: kubelet_bench.py STATE_DIR BUILD_DIR [PODS] [SECONDS]      (called by ./dev bench kubelet)

Prints a table; the last line is one JSON object. Everything shares the machine's cores: read ratios.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from running_cluster import Api, ReadyWatch, bare_cri, cpu_seconds, memory, namespace, pids, pod, summarise

NAMESPACE = "keelson-bench"
BURST = 50
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
PROBES = {"no": None, "httpGet": {"httpGet": {"path": "/passwd", "port": 8080}}, "tcpSocket": {"tcpSocket": {"port": 8080}}}


def probed(name, handler):
    """A pod that serves /etc over HTTP, with a probe every second."""
    spec = pod(name)
    container = spec["spec"]["containers"][0]
    container.update({"image": "localhost/busybox:1", "command": ["httpd", "-f", "-p", "8080", "-h", "/etc"]})
    if handler:
        container["readinessProbe"] = {**handler, "periodSeconds": 1}
    spec["spec"]["terminationGracePeriodSeconds"] = 1  # with 0 the object is removed before the pod has ended
    return spec


class Bench:
    def __init__(self, state, count, seconds):
        self.api, self.count, self.seconds = Api(state / "conf/admin.kubeconfig"), count, seconds
        self.running = pids(state / "nodes/node1")
        self.watch = ReadyWatch(self.api, NAMESPACE)
        self.watch.start()

    def create(self, make, prefix):
        """Creates all pods at once; returns the seconds until the last one is Ready."""
        names, connection, begin = [f"{prefix}-{i}" for i in range(self.count)], self.api.connect(), time.monotonic()
        for name in names:
            self.api.call("POST", PODS, make(name), connection)
        return names, max(self.watch.await_in(self.watch.ready, names, 600)) - begin

    def delete(self, names):
        """Deletes all pods at once; returns the seconds until the last one is gone."""
        begin = time.monotonic()
        self.api.call("DELETE", PODS)
        return max(self.watch.await_in(self.watch.gone, names, 600)) - begin

    def in_turn(self, node, build, count):
        """One pod at a time, each beside one by bare CRI calls: the machine's speed changes from minute to minute. Milliseconds."""
        times = {"create to Ready": [], "bare CRI start": [], "delete to gone": [], "bare CRI stop": []}
        connection = self.api.connect()
        for i in range(count):
            name, begin = f"one-{i}", time.monotonic()
            self.api.call("POST", PODS, pod(name), connection)
            times["create to Ready"].append((self.watch.await_in(self.watch.ready, [name])[0] - begin) * 1000)
            begin = time.monotonic()
            self.api.call("DELETE", f"{PODS}/{name}", None, connection)
            times["delete to gone"].append((self.watch.await_in(self.watch.gone, [name])[0] - begin) * 1000)
            bare = bare_cri(node, build, 2)  # the second one has its connection open, as the kubelet has
            times["bare CRI start"].append(bare["start"][1])
            times["bare CRI stop"].append(bare["stop"][1])
        return {what: summarise(values) for what, values in times.items()}

    def bursts_in_turn(self, node, build, rounds):
        """Bursts of BURST pods, each beside one by bare CRI calls. Pods a second, of each round."""
        rates = {"cluster": [], "bare CRI": []}
        everything, self.count = self.count, BURST
        for i in range(rounds):
            names, seconds = self.create(pod, f"burst-{i}")
            rates["cluster"].append(BURST / seconds)
            self.delete(names)
            rates["bare CRI"].append(BURST / max(bare_cri(node, build, BURST, "--at-once")["start"]) * 1000)
        self.count = everything
        return rates

    def plain_probe(self, build, kind):
        """The CPU time of such a probe in a minimal program, in microseconds."""
        addresses = [pod["status"]["podIP"] for pod in self.api.call("GET", PODS)["items"]]
        done = subprocess.run([build / "bench-tools/plain_probes", kind.removesuffix("Get").removesuffix("Socket"), "5", "8080", *addresses],
                              stdout=subprocess.PIPE, text=True, check=True)
        return float(done.stdout)

    def cpu(self):
        return {name: cpu_seconds(pid) for name, pid in self.running.items()}

    def spent(self, before):
        return {name: after - before[name] for name, after in self.cpu().items()}

    def at_rest(self):
        """Percent of a core that each daemon uses when idle."""
        time.sleep(10)  # pending writes finish
        before = self.cpu()
        time.sleep(self.seconds)
        return {name: round(100 * spent / self.seconds, 2) for name, spent in self.spent(before).items()}


def main():
    state, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    seconds = int(sys.argv[4]) if len(sys.argv) > 4 else 60
    result = {"cores": os.cpu_count(), "pods": count, "cpu_percent": {}, "plain_probe_us": {}}
    with namespace(Api(state / "conf/admin.kubeconfig"), NAMESPACE):
        bench = Bench(state, count, seconds)
        bench.delete(bench.create(pod, "first")[0])  # one-time setup and warm caches for both
        before = bench.cpu()
        names, result["create_s"] = bench.create(pod, "pause")
        result["create_cpu_ms_a_pod"] = {name: round(1000 * spent / count, 1) for name, spent in bench.spent(before).items()}
        result["cpu_percent"]["pause pods"] = bench.at_rest()
        result["memory_mib"] = {name: [round(value, 1) for value in memory(pid)] for name, pid in bench.running.items()}
        before = bench.cpu()
        result["delete_s"] = bench.delete(names)
        result["delete_cpu_ms_a_pod"] = {name: round(1000 * spent / count, 1) for name, spent in bench.spent(before).items()}
        for kind, handler in PROBES.items():
            names, _ = bench.create(lambda name, handler=handler: probed(name, handler), kind.lower())
            result["cpu_percent"][f"{kind} probes"] = bench.at_rest()
            if handler:
                result["plain_probe_us"][kind] = bench.plain_probe(build, kind)
            bench.delete(names)
        result["in_turn_ms"] = bench.in_turn(state / "nodes/node1", build, 30)
        result["burst_pods_per_s"] = bench.bursts_in_turn(state / "nodes/node1", build, 5)
    bare = bare_cri(state / "nodes/node1", build, count, "--at-once")
    result["bare_create_s"], result["bare_delete_s"] = max(bare["start"]) / 1000, max(bare["stop"]) / 1000
    report(result)


def report(result):
    print(f"{result['cores']} cores, {result['pods']} pods")
    for step in ("create", "delete"):
        ours, bare = result[f"{step}_s"], result[f"bare_{step}_s"]
        print(f"{step} all at once: {ours:.2f} s, bare CRI calls {bare:.2f} s, ratio {ours / bare:.2f}")
    for what, times in result["in_turn_ms"].items():
        print(f"one at a time, {what:<16} p50 {times['p50']:.0f} ms, p99 {times['p99']:.0f} ms")
    ours, bare = (statistics.median(rates) for rates in result["burst_pods_per_s"].values())
    print(f"bursts of {BURST} in turn: {ours:.1f} pods/s, bare CRI {bare:.1f}, ratio {ours / bare:.2f}")
    rest = result["cpu_percent"]["no probes"]["kubelet"]
    for kind, plain in result["plain_probe_us"].items():
        ours = (result["cpu_percent"][f"{kind} probes"]["kubelet"] - rest) * 10000 / result["pods"]
        print(f"{kind} probe: {ours:.0f} us of the kubelet's CPU, its system calls alone {plain:.0f} us, ratio {ours / plain:.2f}")
    columns = ["create_cpu_ms_a_pod", "delete_cpu_ms_a_pod"]
    print(f"\n{'daemon':<20}{'USS':>8}{'anon':>8} MiB {'create':>8}{'delete':>8} CPU ms a pod; % of a core with", *result["cpu_percent"], sep="  ")
    for name, (uss, anonymous) in result["memory_mib"].items():
        print(f"{name:<20}{uss:>8}{anonymous:>8}     " + "".join(f"{result[column][name]:>8}" for column in columns) + "  ",
              *(f"{percent[name]:>10}" for percent in result["cpu_percent"].values()))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
