"""Measures many exec streams at a time on the cluster that ./dev up started.

usage: exec_bench.py STATE_DIR [STREAMS]      (called by ./dev bench exec)

Each stream is a WebSocket (v5.channel.k8s.io) to `cat` in one of several pods; it sends lines and waits for each to come back.
A pod has up to 50 streams: what is measured are the servers on the way, not how many processes one shim keeps.
Prints a table; the last line is one JSON object. Client and servers share the machine's cores: read ratios.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import websocket  # noqa: E402

from running_cluster import cpu_seconds  # noqa: E402

STREAMS_A_POD = 50
LABEL = "app=exec-bench"
ROUNDS = 20
STARTS = threading.Semaphore(8)  # at a time: runtimes start processes at their own pace, and calls have deadlines


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "exec-bench"}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": "main", "image": "localhost/busybox:1", "command": ["sleep", "100000"]}]}}


def kubectl(state, *args, stdin=None):
    return subprocess.run(["kubectl", f"--kubeconfig={state}/conf/admin.kubeconfig", *args], input=stdin, text=True, check=True,
                          capture_output=True).stdout


def anonymous_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("RssAnon:")).split()[1])


class Stream(threading.Thread):
    def __init__(self, state, url, line_up):
        super().__init__(daemon=True)
        self.state, self.url, self.line_up = state, url, line_up
        self.rounds, self.failure = [], None

    def run(self):
        try:
            with STARTS:
                stream, _ = websocket.connect(self.state / "pki", self.url, "v5.channel.k8s.io")
                said = websocket.messages(stream)
                self.there_and_back(stream, said, "first")  # the process runs
            self.line_up.wait()
            for i in range(ROUNDS):
                begin = time.monotonic()
                self.there_and_back(stream, said, f"line {i}")
                self.rounds.append(time.monotonic() - begin)
            self.line_up.wait()  # measured while all are open
            self.line_up.wait()
            websocket.send(stream, b"\xff\0")  # closes stdin
            if json.loads(list(said)[-1][1:])["status"] != "Success":
                raise RuntimeError("cat failed")
        except (OSError, RuntimeError, StopIteration, SystemExit, threading.BrokenBarrierError) as error:
            self.failure = error
            self.line_up.abort()

    @staticmethod
    def there_and_back(stream, said, line):
        websocket.send(stream, f"\0{line}\n".encode())
        while not next(said).endswith(f"{line}\n"):
            pass


def main(state, count="500"):
    state, count = pathlib.Path(state), int(count)
    pids = {name: int((state / f"nodes/node1/run/{name}.pid").read_text().split()[0]) for name in ("kube-controlplane", "kubelet", "containerd")}
    names = [f"exec-bench-{i}" for i in range((count + STREAMS_A_POD - 1) // STREAMS_A_POD)]
    kubectl(state, "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod(name) for name in names]}))
    try:
        kubectl(state, "wait", "--for=condition=Ready", "pod", "-l", LABEL, "--timeout=60s")
        server = kubectl(state, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
        url = f"{server}/api/v1/namespaces/default/pods/%s/exec?container=main&command=cat&stdin=1&stdout=1"
        before = {name: anonymous_kib(pid) for name, pid in pids.items()}
        line_up = threading.Barrier(count + 1, timeout=300)
        streams = [Stream(state, url % names[i % len(names)], line_up) for i in range(count)]
        begin = time.monotonic()
        for stream in streams:
            stream.start()
        line_up.wait()
        connected, cpu = time.monotonic() - begin, {name: cpu_seconds(pid) for name, pid in pids.items()}
        line_up.wait()
        used = {name: cpu_seconds(pid) - cpu[name] for name, pid in pids.items()}
        memory = {name: (anonymous_kib(pid) - before[name]) / count for name, pid in pids.items()}
        line_up.wait()
        for stream in streams:
            stream.join()
    except threading.BrokenBarrierError:
        pass  # told below
    finally:
        kubectl(state, "delete", "pod", "-l", LABEL, "--now", "--timeout=120s")
    failures = [repr(stream.failure) for stream in streams
                if stream.failure and not isinstance(stream.failure, threading.BrokenBarrierError)]
    if failures:
        sys.exit(f"{len(failures)} of {count} streams failed: {failures[0]}")
    rounds = sorted(r * 1000 for stream in streams for r in stream.rounds)
    result = {"streams": count, "connected_s": round(connected, 2), "p50_ms": round(statistics.median(rounds), 2),
              "p99_ms": round(rounds[len(rounds) * 99 // 100], 2),
              "anon_kib_a_stream": {name: round(value, 1) for name, value in memory.items()},
              "cpu_us_a_round": {name: round(value / len(rounds) * 1e6) for name, value in used.items()}}
    print(f"{count} exec streams open after {connected:.1f} s; a line there and back: p50 {result['p50_ms']} ms, p99 {result['p99_ms']} ms")
    for name in pids:
        print(f"  {name:18} {result['anon_kib_a_stream'][name]:8} KiB anonymous a stream, {result['cpu_us_a_round'][name]:6} us CPU a line")
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
