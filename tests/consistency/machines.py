"""Three machines in network namespaces, each with kube-controlplane and its member of etcd, and what can happen to them.

The caller is in a network, mount and process namespace of its own (run.py): whatever is made here ends with it.

    bridge br0 192.0.2.254 --+-- m1 eth0 192.0.2.1
                             +-- m2 eth0 192.0.2.2
                             +-- m3 eth0 192.0.2.3
"""
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNT = 3
PORT = 6443
NAMES = [f"m{i + 1}" for i in range(COUNT)]


def run(*args, stdin=None):
    result = subprocess.run([str(arg) for arg in args], capture_output=True, text=True, input=stdin, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, args))}: {result.stdout}{result.stderr}")
    return result.stdout


def address(index):
    return f"192.0.2.{index + 1}"


class Machines:
    def __init__(self, directory, program, flags=()):
        self.dir, self.program, self.flags = pathlib.Path(directory), program, list(flags)
        self.pki = self.dir / "pki"
        self._processes = [None] * COUNT

    # ---- life ----
    def start(self):
        self._make_network()
        self._make_keys()
        for index in range(COUNT):
            self.start_one(index)

    def start_one(self, index):
        name, ip = NAMES[index], address(index)
        members = ",".join(f"{other}=https://{address(i)}:2380" for i, other in enumerate(NAMES))
        command = ["ip", "netns", "exec", name, self.program, "--roles=apiserver", f"--data-dir={self.dir / name}",
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
        return all(process.wait(60) == 0 for process in self._processes)

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
        for task in pathlib.Path(f"/proc/{self.pid(index)}/task").iterdir():
            for child in (task / "children").read_text(encoding="utf-8").split():
                if pathlib.Path(f"/proc/{child}/comm").read_text(encoding="utf-8") == "etcd\n":
                    return int(child)
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

    FAULTS = ("kill", "restart", "stop", "stop_etcd", "stop_all", "cut", "deafen", "mute")

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

    def _make_keys(self):
        self.pki.mkdir()
        ips = [f"IP:{address(index)}" for index in range(COUNT)]
        lines = ["pki_ca ca test-ca", "pki_ca etcd-ca test-etcd-ca", "pki_key $PKI/sa.key",
                 f"pki_cert apiserver /CN=kube-apiserver {','.join(ips)}", "pki_cert admin /O=system:masters/CN=admin",
                 'pki_cert etcd-client /CN=kube-apiserver-etcd-client "" etcd-ca']
        for name, ip in zip(NAMES, ips):
            lines += [f"mkdir $PKI/etcd-{name}", f"ln -s ../etcd-ca.crt $PKI/etcd-{name}/ca.crt",
                      *(f"pki_cert etcd-{name}/{role} /CN={name} IP:127.0.0.1,{ip} etcd-ca" for role in ("server", "peer"))]
        script = f"set -e; PKI={self.pki}; source {ROOT}/tools/dev/pki.sh\n" + "\n".join(lines)
        run("bash", "-c", script)
