"""Measures the cluster that ./dev up started: memory of each daemon, and pod start-up beside bare CRI calls.

usage: cluster_bench.py STATE_DIR BUILD_DIR [PODS]      (called by ./dev bench cluster)

Prints tables; the last line is one JSON object. Client and servers share the machine's cores: read ratios.
"""
import json
import os
import pathlib
import sys
import time

from running_cluster import Api, ReadyWatch, bare_cri, memory, namespace, pids, pod, summarise

NAMESPACE = "keelson-bench"


def main():
    state, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    node = state / "nodes/node1"
    api = Api(state / "conf/admin.kubeconfig")
    result = {"cores": os.cpu_count(), "pods": count}
    running = pids(node)
    result["memory_idle"] = {name: memory(pid) for name, pid in running.items()}

    with namespace(api, NAMESPACE):
        watch = ReadyWatch(api, NAMESPACE)
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
    bare_cri(node, build, 1)  # the first one makes cgroups
    bare = bare_cri(node, build, count)
    result["bare_cri_start_ms"], result["bare_cri_stop_ms"] = summarise(bare["start"]), summarise(bare["stop"])
    report(result)


def report(result):
    print(f"cores: {result['cores']}\n\n{'daemon':<20}{'idle USS':>10}{'anon':>8}   {result['pods']} pods USS{'anon':>8}   MiB")
    for name, (uss, anon) in result["memory_idle"].items():
        loaded = result["memory_loaded"][name]
        print(f"{name:<20}{uss:>10.1f}{anon:>8.1f}{loaded[0]:>14.1f}{loaded[1]:>8.1f}")
    print()
    for key in ("create_to_ready_ms", "bare_cri_start_ms", "delete_to_gone_ms", "bare_cri_stop_ms"):
        print(f"{key:<20} p50 {result[key]['p50']:>8.1f}   p99 {result[key]['p99']:>8.1f}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
