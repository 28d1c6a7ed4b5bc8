#!/usr/bin/env python3
"""Times the CNI plugins beside the reference plugins (root).

usage: cni_plugins_bench.py OUR_BIN_DIR [--reference /usr/lib/cni] [-n 200] [--parallel 16] [--json]

ADD and DEL of two chains, bridge + host-local and the same + portmap with one host port, one after the other
and many at once. Both sets of plugins take turns, call by call, in one run; each has its own bridge and address
range. A fresh network namespace stands for the host, others for the containers; making them is not timed, and
nothing of it is left. Debian's package containernetworking-plugins has the reference plugins.
"""
import argparse
import ctypes
import itertools
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

CLONE_NEWNS, CLONE_NEWNET, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x40000000, 4096, 16384, 1 << 18, 2
LIBC = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        sys.exit(f"cni_plugins_bench: {what}: {os.strerror(ctypes.get_errno())}")


class Namespaces:
    """Network namespaces by path, created and deleted by number."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, number):
        return f"{self.folder}/{number}"

    def make(self, number):
        def body():
            check(LIBC.unshare(CLONE_NEWNET), "make a network namespace")
            open(self.path(number), "w").close()
            source = f"/proc/self/task/{threading.get_native_id()}/ns/net"
            check(LIBC.mount(source.encode(), self.path(number).encode(), None, MS_BIND, None), "bind a namespace")

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()

    def drop(self, number):
        LIBC.umount2(self.path(number).encode(), MNT_DETACH)
        os.unlink(self.path(number))


class Chain:
    """Runs a conflist as a runtime does, with the plugins of one directory."""

    def __init__(self, tag, folder, plugins, data_dir, subnet, namespaces, first_port):
        self.tag, self.folder, self.plugins, self.namespaces = tag, folder, plugins, namespaces
        self.first_port = first_port
        self.bridge = {"type": "bridge", "bridge": f"br-{tag}", "isGateway": True, "hairpinMode": True,
                       "ipam": {"type": "host-local", "dataDir": data_dir, "ranges": [[{"subnet": subnet}]],
                                "routes": [{"dst": "0.0.0.0/0"}]}}

    def config(self, plugin, number, previous):
        config = {"cniVersion": "1.0.0", "name": f"bench-{self.tag}"}
        if plugin == "bridge":
            config.update(self.bridge)
        else:
            mapping = {"hostPort": self.first_port + number, "containerPort": 80, "protocol": "tcp"}
            config.update({"type": plugin, "runtimeConfig": {"portMappings": [mapping]}})
        if previous:
            config["prevResult"] = previous
        return json.dumps(config).encode()

    def call(self, plugin, command, number, previous):
        program = f"{self.folder}/{plugin}"
        environment = {"PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_CONTAINERID": f"{self.tag}-{number}",
                       "CNI_NETNS": self.namespaces.path(number), "CNI_IFNAME": "eth0", "CNI_PATH": self.folder}
        config = self.config(plugin, number, previous)
        stdin, stdout = os.memfd_create("in"), os.memfd_create("out")
        os.write(stdin, config)
        os.lseek(stdin, 0, os.SEEK_SET)
        actions = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)]
        begin = time.monotonic_ns()
        pid = os.posix_spawn(program, [program], environment, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        taken = time.monotonic_ns() - begin
        os.lseek(stdout, 0, os.SEEK_SET)
        answer = os.read(stdout, 1 << 16)
        os.close(stdin)
        os.close(stdout)
        if status != 0:
            raise RuntimeError(f"{program} {command}: {answer.decode()[:400]}")
        return taken, usage.ru_utime + usage.ru_stime, json.loads(answer) if answer.strip() else None

    def run(self, command, number, previous=None):
        """Returns (milliseconds, CPU milliseconds, result) of the whole chain."""
        taken = cpu = 0
        for plugin in self.plugins if command == "ADD" else reversed(self.plugins):
            one, used, result = self.call(plugin, command, number, previous)
            taken, cpu = taken + one, cpu + used
            if command == "ADD":
                previous = result
        return taken / 1e6, cpu * 1e3, previous


def figures(samples):
    times = sorted(s[0] for s in samples)
    at = lambda q: times[min(len(times) - 1, int(q * len(times)))]
    return {"p50": round(at(0.5), 2), "p99": round(at(0.99), 2), "n": len(times),
            "cpu": round(sum(s[1] for s in samples) / len(samples), 2)}


def measure(chains, namespaces, count, workers):
    """{(chain tag, command): figures}; the chains take turns, with one call each or a block of calls."""
    block = 1 if workers == 1 else 4 * workers
    turns = [(chain, number) for begin in range(0, count, block) for chain in chains
             for number in range(begin, min(begin + block, count))]
    # A container belongs to one chain: the chains share one numbering of namespaces.
    numbered = {(chain.tag, number): i for i, (chain, number) in enumerate(turns)}
    for i in numbered.values():
        namespaces.make(i)
    out = {}
    with ThreadPoolExecutor(workers) as pool:
        def run_all(command, previous):
            samples = []
            for _, group in itertools.groupby(range(len(turns)), key=lambda i: turns[i][0].tag):
                group = list(group)
                samples += pool.map(lambda i: turns[i][0].run(command, numbered[turns[i][0].tag, turns[i][1]],
                                                              previous[i]), group)
            return samples

        added = run_all("ADD", [None] * len(turns))
        for (chain, _), (_, _, result) in zip(turns, added):
            if not result or not result.get("ips"):
                raise RuntimeError(f"{chain.tag}: ADD gave no address")
        deleted = run_all("DEL", [result for _, _, result in added])
    for i in numbered.values():
        namespaces.drop(i)
    for command, samples in (("ADD", added), ("DEL", deleted)):
        for chain in chains:
            out[chain.tag, command] = figures([s for (c, _), s in zip(turns, samples) if c is chain])
    return out


def reaches(chain, namespaces, number):
    """Checks that the gateway answers at the link layer from inside a container."""
    chain.namespaces.make(number)
    _, _, result = chain.run("ADD", number)
    ips = {ip["address"].split("/")[0] for ip in result["ips"]}
    found = os.popen(f"nsenter --net={namespaces.path(number)} ip -o -4 addr show dev eth0").read()
    chain.run("DEL", number, result)
    namespaces.drop(number)
    return all(ip in found for ip in ips)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--reference", default="/usr/lib/cni")
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    sets = {"keelson": os.path.abspath(args.bin)}
    if os.access(f"{args.reference}/bridge", os.X_OK):
        sets["reference"] = args.reference
    else:
        print(f"no reference plugins in {args.reference}: apt-get install containernetworking-plugins")
    check(LIBC.unshare(CLONE_NEWNS | CLONE_NEWNET), "make namespaces (root?)")
    check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "make mounts private")
    os.system("ip link set lo up")
    scratch = tempfile.mkdtemp(prefix="cni-bench-")
    namespaces = Namespaces(scratch)
    rows = []
    try:
        for index, plugins in enumerate((["bridge"], ["bridge", "portmap"])):
            usable = [t for t in sets if t == "keelson" or len(plugins) == 1 or shutil.which("iptables")]
            if len(usable) < len(sets):
                print("the reference portmap needs iptables, which is not installed")
            chains = [Chain(tag, sets[tag], plugins, f"{scratch}/ipam-{tag}-{index}", f"10.{200 + 10 * index + i}.0.0/16",
                            namespaces, 20000) for i, tag in enumerate(usable)]
            for i, chain in enumerate(chains):
                chain.bridge["bridge"] += str(index)
                if not reaches(chain, namespaces, i):
                    raise RuntimeError(f"{chain.tag}: the address is not on eth0")
            for mode, workers in (("one by one", 1), (f"{args.parallel} at once", args.parallel)):
                found = measure(chains, namespaces, args.n, workers)
                for command in ("ADD", "DEL"):
                    rows.append(("+".join(["bridge", "host-local"] + plugins[1:]), mode, command,
                                 {chain.tag: found[chain.tag, command] for chain in chains}))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if args.json:
        print(json.dumps([{"chain": c, "mode": m, "command": v, **f} for c, m, v, f in rows]))
        return
    print(f"{'chain':28}{'':14}{'':5}{'keelson p50 / p99 / CPU':>26}{'reference p50 / p99 / CPU':>30}{'p50':>7}   (ms)")
    for chain, mode, command, by_tag in rows:
        cell = lambda tag: "{p50:.2f} / {p99:.2f} / {cpu:.1f}".format(**by_tag[tag]) if tag in by_tag else "-"
        ratio = f"{by_tag['keelson']['p50'] / by_tag['reference']['p50']:.2f}x" if "reference" in by_tag else ""
        print(f"{chain:28}{mode:14}{command:5}{cell('keelson'):>26}{cell('reference'):>30}{ratio:>7}")


if __name__ == "__main__":
    main()
