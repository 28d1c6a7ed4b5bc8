"""Measures kube-proxy with many Services in the cluster that ./dev up started: memory, CPU, and when the kernel has them.

usage: services_bench.py STATE_DIR [SERVICES...]      (called by ./dev bench services; default 100 10000)

Each Service has three endpoints. Prints a table; the last line is one JSON object.
"""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import threading
import time

from running_cluster import Api, cpu_seconds, memory, namespace, pids

NAMESPACE = "keelson-bench-services"
CONNECTIONS = 8


def service(i):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s-{i}"}, "spec": {"ports": [{"name": "http", "port": 80}]}}


def endpoint_slice(i):
    addresses = [f"10.{200 + e}.{i // 250}.{i % 250 + 1}" for e in range(3)]  # of nobody
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": f"s-{i}-1", "labels": {"kubernetes.io/service-name": f"s-{i}"}},
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [{"addresses": [a], "conditions": {"ready": True}} for a in addresses]}


class Creator:
    """Writes objects through a few connections, each kept open by its thread."""

    def __init__(self, api):
        self.api, self.local = api, threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(CONNECTIONS)

    def _create(self, path, body):
        if not hasattr(self.local, "connection"):
            self.local.connection = self.api.connect()
        return self.api.call("POST", path, body, self.local.connection)

    def create(self, numbers):
        """The Services' addresses, in order."""
        core, discovery = (f"/{group}/namespaces/{NAMESPACE}/" for group in ("api/v1", "apis/discovery.k8s.io/v1"))
        list(self.pool.map(lambda i: self._create(discovery + "endpointslices", endpoint_slice(i)), numbers))
        made = self.pool.map(lambda i: self._create(core + "services", service(i)), numbers)
        return [one["spec"]["clusterIP"] for one in made]


def in_kernel(address):
    table = ["ip6" if ":" in address else "ip", "keelson-proxy"]
    return subprocess.run(["nft", "get", "element", *table, "services", "{", address, ".", "tcp", ".", "80", "}"],
                          capture_output=True).returncode == 0


def until(what, seconds):
    begin = time.monotonic()
    while not what():
        if time.monotonic() - begin > seconds:
            raise RuntimeError(f"not within {seconds} s")
        time.sleep(0.002)
    return time.monotonic() - begin


def rest(pid):
    """Until the process does nothing."""
    before = None
    while (now := cpu_seconds(pid)) != before:
        before = now
        time.sleep(1)


def main():
    state, sizes = pathlib.Path(sys.argv[1]), [int(n) for n in sys.argv[2:]] or [100, 10000]
    api = Api(state / "conf/admin.kubeconfig")
    pid = pids(state / "nodes/node1")["kube-proxy"]
    creator, rows, have = Creator(api), [], 0
    rows.append({"services": 0, "memory": memory(pid)})
    with namespace(api, NAMESPACE):
        for size in sizes:
            cpu, begin = cpu_seconds(pid), time.monotonic()
            addresses = creator.create(range(have, size))
            made = time.monotonic()
            lag = until(lambda: in_kernel(addresses[-1]), 60)
            rest(pid)
            rows.append({"services": size, "memory": memory(pid), "created_per_s": round(2 * (size - have) / (made - begin)),
                         "lag_ms": round(lag * 1000, 1), "cpu_us_per_object": round((cpu_seconds(pid) - cpu) * 1e6 / (2 * (size - have)))})
            have = size
    rest(pid)
    rows.append({"services": 0, "memory": memory(pid)})
    print(f"{'Services':>9}{'USS':>8}{'anon':>8} MiB{'created/s':>11}{'last one after':>16}{'CPU an object':>15}")
    for row in rows:
        uss, anon = row["memory"]
        rest_of_row = f"{row['created_per_s']:>11}{row['lag_ms']:>13} ms{row['cpu_us_per_object']:>12} us" if "lag_ms" in row else ""
        print(f"{row['services']:>9}{uss:>8.1f}{anon:>8.1f}    {rest_of_row}")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
