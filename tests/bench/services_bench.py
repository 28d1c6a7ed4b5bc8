"""Measures kube-proxy with many Services in the cluster that ./dev up started: memory, CPU, and when the kernel has them.

usage: services_bench.py STATE_DIR [SERVICES...]      (called by ./dev bench services; default 100 10000)

Each Service has three endpoints. Prints a table; the last line is one JSON object.
"""
import concurrent.futures
import json
import pathlib
import socket
import sys
import threading
import time

from running_cluster import Api, cpu_seconds, memory, namespace, pids

NAMESPACE = "keelson-bench-services"
CONNECTIONS = 8
SYNC_PERIOD = 31  # seconds: kube-proxy's, and one more


def service(i):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s-{i}"}, "spec": {"ports": [{"name": "http", "port": 80}]}}


def endpoint_slice(i):
    addresses = [f"10.{200 + e}.{i // 250}.{i % 250 + 1}" for e in range(3)]  # unused
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": f"s-{i}-1", "labels": {"kubernetes.io/service-name": f"s-{i}"}},
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [{"addresses": [a], "conditions": {"ready": True}} for a in addresses]}


class Creator:
    """Writes objects over a few connections, one per thread."""

    def __init__(self, api):
        self.api, self.local = api, threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(CONNECTIONS)

    def _create(self, path, body):
        if not hasattr(self.local, "connection"):
            self.local.connection = self.api.connect()
        return self.api.call("POST", path, body, self.local.connection)

    def create(self, numbers):
        core, discovery = (f"/{group}/namespaces/{NAMESPACE}/" for group in ("api/v1", "apis/discovery.k8s.io/v1"))
        list(self.pool.map(lambda i: self._create(discovery + "endpointslices", endpoint_slice(i)), numbers))
        list(self.pool.map(lambda i: self._create(core + "services", service(i)), numbers))


class Probe:
    """A Service with an endpoint on the node; lag() returns the seconds from sending the Service until it answers."""

    def __init__(self, api, node_ip):
        self.api, self.node_ip, self.made = api, node_ip, 0
        self.listener = socket.create_server((node_ip, 0), backlog=1024)

    def lag(self):
        name, self.made = f"probe-{self.made}", self.made + 1
        port = self.listener.getsockname()[1]
        self.api.call("POST", f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices", {
            **endpoint_slice(0), "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [self.node_ip], "conditions": {"ready": True}}]})
        begin = time.monotonic()
        made = self.api.call("POST", f"/api/v1/namespaces/{NAMESPACE}/services", {**service(0), "metadata": {"name": name}})
        until(lambda: self.answers(made["spec"]["clusterIP"]), 60)
        return time.monotonic() - begin

    @staticmethod
    def answers(address):
        try:
            socket.create_connection((address, 80), timeout=0.05).close()
            return True
        except OSError:
            return False


def until(what, seconds):
    begin = time.monotonic()
    while not what():
        if time.monotonic() - begin > seconds:
            raise RuntimeError(f"not within {seconds} s")
        time.sleep(0.001)


def rest(pid):
    """Waits until the process uses no CPU."""
    before = None
    while (now := cpu_seconds(pid)) != before:
        before = now
        time.sleep(1)


def main():
    state, sizes = pathlib.Path(sys.argv[1]), [int(n) for n in sys.argv[2:]] or [100, 10000]
    api = Api(state / "conf/admin.kubeconfig")
    pid = pids(state / "nodes/node1")["kube-proxy"]
    node = api.call("GET", "/api/v1/nodes/node1")
    probe = Probe(api, next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP"))
    creator, rows, have = Creator(api), [], 0
    rows.append({"services": 0, "memory": memory(pid)})
    with namespace(api, NAMESPACE):
        for size in sizes:
            cpu, begin = cpu_seconds(pid), time.monotonic()
            creator.create(range(have, size))
            made = time.monotonic()
            lag = probe.lag()
            rest(pid)
            rows.append({"services": size, "memory": memory(pid), "created_per_s": round(2 * (size - have) / (made - begin)),
                         "lag_ms": round(lag * 1000, 1), "cpu_us_per_object": round((cpu_seconds(pid) - cpu) * 1e6 / (2 * (size - have)))})
            have = size
    time.sleep(SYNC_PERIOD)  # after it free memory is returned
    rest(pid)
    rows.append({"services": 0, "memory": memory(pid)})
    print(f"{'Services':>9}{'USS':>8}{'anon':>8} MiB{'created/s':>11}{'one more after':>16}{'CPU an object':>15}")
    for row in rows:
        uss, anon = row["memory"]
        rest_of_row = f"{row['created_per_s']:>11}{row['lag_ms']:>13} ms{row['cpu_us_per_object']:>12} us" if "lag_ms" in row else ""
        print(f"{row['services']:>9}{uss:>8.1f}{anon:>8.1f}    {rest_of_row}")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
