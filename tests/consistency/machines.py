"""Three machines in network namespaces, each with kube-controlplane and its member of etcd, and what can happen to them.

The caller is in a network, mount and process namespace of its own (run.py): whatever is made here ends with it.

    bridge br0 192.0.2.254 --+-- m1 eth0 192.0.2.1
                             +-- m2 eth0 192.0.2.2
                             +-- m3 eth0 192.0.2.3
"""
import errno
import json
import os
import pathlib
import random
import signal
import ssl
import struct
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNT = 3
PORT = 6443
NAMES = [f"m{i + 1}" for i in range(COUNT)]
HOST = "servers"  # in the API servers' certificates, for clients that know one name of all three
DISK = "1g"  # size of each machine's
# Seconds that the machines' clocks are ahead. None is ever behind the time of their certificates.
CLOCKS = [7200, 7245, 7155]
JUMP = 3600
LARGE = 12  # objects, of nearly a megabyte each
SLOW_SYNC = 0.15  # seconds more of each call that waits for the disk


def run(*args, stdin=None):
    result = subprocess.run([str(arg) for arg in args], capture_output=True, text=True, input=stdin, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, args))}: {result.stdout}{result.stderr}")
    return result.stdout


def address(index):
    return f"192.0.2.{index + 1}"


class Machines:
    """`count`: how many of the three there are. `plain`: with the disk and the clock of this machine; faults of these then do
    not exist."""

    def __init__(self, directory, program, flags=(), count=COUNT, plain=False):
        self.dir, self.program, self.flags = pathlib.Path(directory), program, list(flags)
        self.pki = self.dir / "pki"
        self.count, self.plain = count, plain
        self._processes = [None] * count
        self._clock = None  # library that moves a program's clock

    # ---- life ----
    def start(self):
        self._make_network()
        self._make_keys()
        for index in range(self.count):
            (self.dir / NAMES[index]).mkdir()
            if self.plain:
                continue
            run("mount", "-t", "tmpfs", "-o", f"size={DISK}", NAMES[index], self.dir / NAMES[index])
        if not self.plain:
            self._make_clocks()
        for index in range(self.count):
            self.start_one(index)

    def start_one(self, index):
        name, ip = NAMES[index], address(index)
        members = ",".join(f"{other}=https://{address(i)}:2380" for i, other in enumerate(NAMES[:self.count]))
        # A host name of its own: servers know each other by it.
        host = ["unshare", "--uts", "sh", "-c", 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"', name]
        clock = [] if self._clock is None else ["env", f"LD_PRELOAD={self._clock}", f"CLOCK_FILE={self._clock_file(index)}"]
        command = ["ip", "netns", "exec", name, *host, *clock, self.program, "--roles=apiserver", f"--data-dir={self.dir / name}/data",
                   f"--bind-address={ip}", f"--secure-port={PORT}", f"--advertise-address={ip}",
                   f"--tls-cert-file={self.pki}/apiserver.crt", f"--tls-private-key-file={self.pki}/apiserver.key",
                   f"--client-ca-file={self.pki}/ca.crt", f"--service-account-signing-key-file={self.pki}/sa.key",
                   f"--etcd-address={ip}", f"--etcd-name={name}", f"--etcd-initial-cluster={members}",
                   "--etcd-initial-cluster-state=new", f"--etcd-pki-dir={self.pki}/etcd-{name}", f"--etcd-cafile={self.pki}/etcd-ca.crt",
                   f"--etcd-certfile={self.pki}/etcd-client.crt", f"--etcd-keyfile={self.pki}/etcd-client.key", *self.flags]
        with open(self.dir / f"{name}.log", "a", encoding="utf-8") as log:
            self._processes[index] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def end(self):
        """SIGTERM to all; returns whether each ended in order."""
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        in_order = all(process.wait(60) == 0 for process in self._processes)
        for name in NAMES[:0 if self.plain else self.count]:
            run("umount", self.dir / name)
        return in_order

    def check(self):
        """Raises when a process has ended by itself."""
        for name, process in zip(NAMES, self._processes):
            if process.poll() is not None:
                raise RuntimeError(f"{name} has ended: {process.returncode}\n" + self.log(name))

    def log(self, name):
        return "".join((self.dir / f"{name}.log").read_text(encoding="utf-8").splitlines(keepends=True)[-20:])

    def pid(self, index):
        return self._processes[index].pid

    def etcd_pid(self, index):
        """None: it does not run."""
        try:
            for task in pathlib.Path(f"/proc/{self.pid(index)}/task").iterdir():
                for child in (task / "children").read_text(encoding="utf-8").split():
                    if pathlib.Path(f"/proc/{child}/comm").read_text(encoding="utf-8") == "etcd\n":
                        return int(child)
        except OSError:  # something has just ended
            pass
        return None

    # ---- faults: each lasts for some seconds and is over when the call returns ----
    def kill(self, index, seconds):
        """kill -9; etcd dies with its parent."""
        process = self._processes[index]
        process.kill()
        process.wait()
        time.sleep(seconds)
        self.start_one(index)

    def restart(self, index, _seconds):
        """SIGTERM, and a start at once."""
        process = self._processes[index]
        process.terminate()
        process.wait(90)
        self.start_one(index)

    def stop(self, index, seconds):
        self._pause([self.pid(index)], seconds)

    def stop_etcd(self, index, seconds):
        """A leader loses its leadership by that."""
        pid = self.etcd_pid(index)
        if pid is not None:
            self._pause([pid], seconds)

    def stop_all(self, index, seconds):
        self._pause([pid for pid in (self.pid(index), self.etcd_pid(index)) if pid is not None], seconds)

    def cut(self, index, seconds):
        run("ip", "link", "set", f"to-{NAMES[index]}", "down")
        time.sleep(seconds)
        run("ip", "link", "set", f"to-{NAMES[index]}", "up")

    def deafen(self, index, seconds):
        """One way: what the machine sends arrives, and it gets nothing."""
        self._drop(index, "input", seconds)

    def mute(self, index, seconds):
        self._drop(index, "output", seconds)

    def fill_disk(self, index, seconds):
        """etcd ends when it cannot write, and is started again. Large objects see to it that it needs more than it has."""
        filler = self.dir / NAMES[index] / "filler"
        with open(filler, "wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
            before, end = self.etcd_pid(index), time.monotonic() + seconds
            for number in range(LARGE):
                if self.etcd_pid(index) != before or time.monotonic() > end + 3:
                    break
                self._ask((index + 1) % self.count, "POST", "/api/v1/namespaces/default/configmaps", json.dumps(
                    {"metadata": {"name": f"large{number}"}, "data": {"value": "x" * 900_000}}))
            time.sleep(max(0.0, end - time.monotonic()))
        print(f"    its etcd {'goes on' if self.etcd_pid(index) == before else 'has ended'}", flush=True)
        filler.unlink()
        for number in range(LARGE):
            self._ask((index + 1) % self.count, "DELETE", f"/api/v1/namespaces/default/configmaps/large{number}")

    def slow_disk(self, index, seconds):
        pid = self.etcd_pid(index)
        if pid is None:
            return
        slow = f"inject=fsync,fdatasync:delay_exit={int(SLOW_SYNC * 1e6)}"
        with subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", slow, "-p", str(pid)],
                              stderr=subprocess.PIPE, text=True) as tracer:
            time.sleep(seconds)
            if tracer.poll() not in (None, 0) and self.etcd_pid(index) == pid:
                raise RuntimeError(f"strace: {tracer.stderr.read()}")
            tracer.terminate()

    def jump_clock(self, index, seconds):
        """The API server's: etcd, which a library cannot lead astray, keeps the machine's."""
        self._set_clock(index, CLOCKS[index] + random.uniform(-JUMP, JUMP))
        time.sleep(seconds)
        self._set_clock(index, CLOCKS[index])

    def upgrade(self, _index, _seconds):
        """All machines one after the other, each once the one before serves again."""
        for index in range(self.count):
            self.restart(index, 0)
            self.await_ready(index)

    FAULTS = ("kill", "restart", "stop", "stop_etcd", "stop_all", "cut", "deafen", "mute", "fill_disk", "slow_disk", "jump_clock",
              "upgrade")

    def memory(self):
        """KiB of anonymous memory of each server and its etcd."""
        out = {}
        for index, name in enumerate(NAMES[:self.count]):
            for what, pid in ((name, self.pid(index)), (f"{name}'s etcd", self.etcd_pid(index))):
                try:
                    resident, shared = map(int, pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1:3])
                except (OSError, IndexError):
                    continue  # it has just died
                out[what] = (resident - shared) * os.sysconf("SC_PAGE_SIZE") // 1024
        return out

    def await_ready(self, index, seconds=90):
        end = time.monotonic() + seconds
        while (problem := self._ask(index, "GET", "/readyz")) is not None:
            if time.monotonic() > end:
                raise RuntimeError(f"{NAMES[index]} does not come back: {problem}")
            time.sleep(0.1)

    def _ask(self, index, method, path, body=None):
        """As the administrator. Returns the problem, if there is one."""
        tls = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
        tls.load_cert_chain(str(self.pki / "admin.crt"), str(self.pki / "admin.key"))
        request = urllib.request.Request(f"https://{address(index)}:{PORT}{path}", body.encode() if body else None,
                                         {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=5, context=tls):
                return None
        except OSError as error:
            return error

    def _clock_file(self, index):
        return self.dir / f"{NAMES[index]}.clock"

    def _set_clock(self, index, seconds):
        with open(self._clock_file(index), "r+b", buffering=0) as file:
            file.write(struct.pack("q", int(seconds * 1e9)))

    @staticmethod
    def _pause(pids, seconds):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    @staticmethod
    def _drop(index, hook, seconds):
        inside = ["ip", "netns", "exec", NAMES[index], "nft"]
        device = "iifname" if hook == "input" else "oifname"
        rules = f'table ip fault {{\n chain {hook} {{\n type filter hook {hook} priority 0\n {device} "eth0" drop\n }}\n}}\n'
        run(*inside, "-f", "-", stdin=rules)
        time.sleep(seconds)
        run(*inside, "delete", "table", "ip", "fault")

    # ---- making ----
    @staticmethod
    def _make_network():
        run("mount", "-t", "tmpfs", "-o", "mode=755", "netns", "/run/netns")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "addr", "add", "192.0.2.254/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        for index, name in enumerate(NAMES):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"to-{name}", "master", "br0", "up")
            for command in (["link", "set", "lo", "up"], ["addr", "add", f"{address(index)}/24", "dev", "eth0"],
                            ["link", "set", "eth0", "up"], ["route", "add", "default", "via", "192.0.2.254"]):
                run("ip", "-n", name, *command)

    def _make_clocks(self):
        # A sanitizer's library has to be the first that is loaded.
        if "san.so" in run("ldd", self.program):
            return
        for index in range(self.count):
            self._clock_file(index).write_bytes(bytes(8))
            self._set_clock(index, CLOCKS[index])
        self._clock = self.dir / "clock.so"
        run("cc", "-O2", "-shared", "-fPIC", "-o", self._clock, pathlib.Path(__file__).with_name("clock.c"))

    def _make_keys(self):
        self.pki.mkdir()
        ips = [f"IP:{address(index)}" for index in range(COUNT)]
        lines = ["pki_ca ca test-ca", "pki_ca etcd-ca test-etcd-ca", "pki_key $PKI/sa.key",
                 f"pki_cert apiserver /CN=kube-apiserver {','.join(ips)},DNS:{HOST}", "pki_cert admin /O=system:masters/CN=admin",
                 'pki_cert etcd-client /CN=kube-apiserver-etcd-client "" etcd-ca']
        for name, ip in zip(NAMES, ips):
            lines += [f"mkdir $PKI/etcd-{name}", f"ln -s ../etcd-ca.crt $PKI/etcd-{name}/ca.crt",
                      *(f"pki_cert etcd-{name}/{role} /CN={name} IP:127.0.0.1,{ip} etcd-ca" for role in ("server", "peer"))]
        script = f"set -e; PKI={self.pki}; source {ROOT}/tools/dev/pki.sh\n" + "\n".join(lines)
        run("bash", "-c", script)
