#!/usr/bin/env python3
"""How long clients of three machines get no answer when etcd's leader dies or hangs, and when an API server dies (root).

usage: failover_bench.py BIN_DIR STEADY_WRITES [--kills 20] [--kubectl PATH] [--faults NAME,...] [--dir DIR]

The machines are namespaces of this one, each with kube-controlplane and its member of etcd. Three kinds of client write one after
the other, each something of its own:

    etcd    one for each member, past the API servers: etcd's gateway, and another try after 0.2 s
    server  two for each API server, which wait for every answer and know only that server
    node    two with Keelson's client, which know the three addresses of a name

The longest pause between two acknowledged writes, around each fault, of those whose server goes on: what "server" and "node" need
more than "etcd" is what the API servers add.
"""
import argparse
import base64
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "consistency"))
from machines import COUNT, HOST, NAMES, PORT, Machines, address  # noqa: E402  pylint: disable=wrong-import-position

BEFORE, AFTER = 1.5, 9.0  # seconds of writes around a fault
STOPPED = 6.0  # seconds that a stopped process stands still
now = time.monotonic


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", help="where kube-controlplane is")
    parser.add_argument("steady_writes")
    parser.add_argument("--kills", type=int, default=20, help="of each kind")
    parser.add_argument("--kubectl", help="measures it too")
    parser.add_argument("--faults", default="kill_leader,stop_leader,kill_server,kill_machine,cut_machine")
    parser.add_argument("--dir", default="/var/tmp", help="on the disk that etcd is to write to")
    return parser.parse_args()


def in_own_namespaces():
    """Becomes a process in namespaces of its own: all that is made there ends with it."""
    if os.environ.get("FAILOVER_INSIDE"):
        return
    os.environ["FAILOVER_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv])


class Writer(threading.Thread):
    """Notes when its writes were answered."""

    def __init__(self, kind, index):
        super().__init__(daemon=True)
        self.kind, self.index, self.answered, self.errors = kind, index, [], []

    def note(self, at, problem=None):
        if problem is None:
            self.answered.append(at)
        else:
            self.errors.append((at, problem))

    def pause_within(self, begin, end):
        """The longest between two answers; None: there is none at all after the fault."""
        around = [at for at in list(self.answered) if begin <= at <= end]
        return max((b - a for a, b in zip(around, around[1:])), default=None)


class HttpWriter(Writer):
    PAUSE = 0.01

    def __init__(self, kind, index, tls, port, timeout):
        super().__init__(kind, index)
        self._tls, self._port, self._timeout = tls, port, timeout
        self.start()

    def run(self):
        connection = None
        while True:
            try:
                if connection is None:
                    connection = http.client.HTTPSConnection(address(self.index), self._port, timeout=self._timeout, context=self._tls)
                connection.request(*self.request())
                response = connection.getresponse()
                body = response.read()
                self.note(now(), None if response.status in (200, 201) else f"{response.status} {body[:200]}")
            except (OSError, http.client.HTTPException) as error:
                self.note(now(), repr(error))
                connection.close()
                connection = None
            time.sleep(self.PAUSE)


class EtcdWriter(HttpWriter):
    def request(self):
        text = base64.b64encode(f"bench/{self.index}".encode()).decode()
        return "POST", "/v3/kv/put", json.dumps({"key": text, "value": text}), {"Content-Type": "application/json"}


class ServerWriter(HttpWriter):
    def __init__(self, number, *args):
        self._path, self._count = f"/api/v1/namespaces/default/configmaps/s{number}", 0
        super().__init__("server", *args)

    def request(self):
        self._count += 1
        return ("PATCH", self._path, json.dumps({"data": {"count": str(self._count)}}),
                {"Content-Type": "application/merge-patch+json"})


class NodeWriter(Writer):
    def __init__(self, program, kubeconfig, name):
        super().__init__("node", None)
        self._process = subprocess.Popen([program, kubeconfig, name], stdout=subprocess.PIPE, text=True)
        self.start()

    def run(self):
        for line in self._process.stdout:
            at, outcome = line.rstrip("\n").split(" ", 1)
            self.note(int(at) / 1e9, None if outcome == "ok" else outcome)


class Bench:
    FAULTS = ("kill_leader", "stop_leader", "kill_server", "kill_machine", "cut_machine")

    def __init__(self, args, directory):
        self._args = args
        # There are no controllers, and so no ServiceAccounts for pods.
        self._machines = Machines(directory, pathlib.Path(args.programs) / "kube-controlplane",
                                  ["--disable-admission-plugins=ServiceAccount"], plain=True)
        self._writers, self._turn = [], 0

    def begin(self):
        self._name_servers()
        self._machines.start()
        for index in range(COUNT):
            self._machines.await_ready(index)
        pki = self._machines.pki
        self._etcd_tls = ssl.create_default_context(cafile=str(pki / "etcd-ca.crt"))
        self._etcd_tls.load_cert_chain(str(pki / "etcd-client.crt"), str(pki / "etcd-client.key"))
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
        self._kubeconfig = self._write_kubeconfig()
        for name in [*(f"s{i}" for i in range(2 * COUNT)), "n0", "n1"]:
            self._ask(0, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
        time.sleep(12)  # until each server has learned of the others' members, and what it does at its start is done
        self._writers += [EtcdWriter("etcd", index, self._etcd_tls, 2379, 0.2) for index in range(COUNT)]
        self._writers += [ServerWriter(i, i % COUNT, self._tls, PORT, 30) for i in range(2 * COUNT)]
        self._writers += [NodeWriter(self._args.steady_writes, self._kubeconfig, f"n{i}") for i in range(2)]

    def _name_servers(self):
        """Only in this mount namespace."""
        hosts = self._machines.dir / "hosts"
        hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{address(i)} {HOST}\n" for i in range(COUNT)), encoding="utf-8")
        subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)

    def _write_kubeconfig(self):
        pki, path = self._machines.pki, self._machines.dir / "admin.kubeconfig"
        path.write_text(f"""apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://{HOST}:{PORT}", certificate-authority: {pki}/ca.crt}}}}]
users: [{{name: u, user: {{client-certificate: {pki}/admin.crt, client-key: {pki}/admin.key}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
""", encoding="utf-8")
        return path

    def _ask(self, index, method, path, body=None, port=PORT, tls=None):
        connection = http.client.HTTPSConnection(address(index), port, timeout=5, context=tls or self._tls)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return json.loads(response.read())

    def _leader(self):
        for index in range(COUNT):
            status = self._ask(index, "POST", "/v3/maintenance/status", {}, 2379, self._etcd_tls)
            if status["header"]["member_id"] == status["leader"]:
                return index
        raise RuntimeError("etcd has no leader")

    def _kubectl(self):
        """Seconds of one call, or None."""
        if not self._args.kubectl:
            return None
        begin = now()
        subprocess.run([self._args.kubectl, "--kubeconfig", self._kubeconfig, "get", "--raw", "/api/v1/namespaces/default"],
                       stdout=subprocess.DEVNULL, check=True)
        return now() - begin

    # ---- faults: each returns the machine whose own clients do not count, and what undoes it ----
    def kill_leader(self):
        leader = self._leader()
        os.kill(self._machines.etcd_pid(leader), signal.SIGKILL)
        return leader, lambda: None

    def stop_leader(self):
        leader = self._leader()
        pid = self._machines.etcd_pid(leader)
        os.kill(pid, signal.SIGSTOP)

        def go_on():
            time.sleep(STOPPED)
            os.kill(pid, signal.SIGCONT)
        return leader, go_on

    def kill_server(self):
        """kube-controlplane and its etcd, of a machine that does not lead."""
        return self._kill([index for index in range(COUNT) if index != self._leader()][self._turn % (COUNT - 1)])

    def kill_machine(self):
        return self._kill(self._leader())

    def _kill(self, index):
        process = self._machines._processes[index]  # pylint: disable=protected-access
        process.kill()
        process.wait()

        def start():
            time.sleep(STOPPED)
            self._machines.start_one(index)
        return index, start

    def cut_machine(self):
        index = self._leader()
        subprocess.run(["ip", "link", "set", f"to-{NAMES[index]}", "down"], check=True)

        def join():
            time.sleep(STOPPED)
            subprocess.run(["ip", "link", "set", f"to-{NAMES[index]}", "up"], check=True)
        return index, join

    def measure(self, fault):
        pauses, calls = {"etcd": [], "server": [], "node": []}, []
        for self._turn in range(self._args.kills):
            time.sleep(BEFORE)
            begin = now()
            lost, undo = getattr(self, fault)()
            calls.append(self._kubectl())
            undo()
            time.sleep(max(0.0, begin + AFTER - now()))
            for kind, out in pauses.items():
                of = [writer.pause_within(begin - BEFORE, begin + AFTER - 1) for writer in self._writers
                      if writer.kind == kind and writer.index != lost]
                if kind == "etcd":  # any that answers is enough
                    of = [min(pause for pause in of if pause is not None)]
                if None in of:
                    raise RuntimeError(f"{fault} of {NAMES[lost]}: a client ({kind}) got no answer: " + str(
                        [writer.errors[-3:] for writer in self._writers if writer.kind == kind]))
                out.append(max(of))
            for index in range(COUNT):
                self._machines.await_ready(index)
        print(f"{fault}, {self._args.kills} times: seconds without an acknowledged write, median and longest", flush=True)
        for kind, out in pauses.items():
            added = statistics.median(a - b for a, b in zip(out, pauses["etcd"]))
            print(f"  {kind:8} {statistics.median(out):5.2f} {max(out):5.2f}   more than etcd, median {added:5.2f}", flush=True)
        if self._args.kubectl:
            print(f"  kubectl  {statistics.median(calls):5.2f} {max(calls):5.2f}   of a call just after the fault", flush=True)

    def end(self):
        if not self._machines.end():
            raise RuntimeError("a server has not ended in order")


def main():
    args = arguments()
    in_own_namespaces()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="keelson-failover-", dir=args.dir))
    bench = Bench(args, directory)
    try:
        bench.begin()
        for fault in args.faults.split(","):
            bench.measure(fault)
    except Exception:
        print(f"the logs are in {directory}", flush=True)
        raise
    bench.end()
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
