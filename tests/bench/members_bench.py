#!/usr/bin/env python3
"""Writes per second of one machine, and of the first of three, each with kube-controlplane and its member of etcd (root).

usage: members_bench.py BIN_DIR API_LOAD [--writes 2000] [--workers 32] [--dir DIR]

All machines are namespaces of this one and share its processors and its disk, so three cost what three cost: the difference
is what replication takes, and twice as many other programs.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "consistency"))
from machines import PORT, Machines, address  # noqa: E402  pylint: disable=wrong-import-position

SHOWN = ("create ConfigMaps", "get", "update", "patch, merge")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", help="where kube-controlplane is")
    parser.add_argument("api_load")
    parser.add_argument("--writes", type=int, default=2000, help="of each kind")
    parser.add_argument("--workers", type=int, default=32, help="requests under way at once")
    parser.add_argument("--dir", default="/var/tmp", help="on the disk that etcd is to write to")
    parser.add_argument("--count", type=int, help="measure only with so many, in the present namespaces")
    return parser.parse_args()


def kubeconfig(machines):
    path = machines.dir / "admin.kubeconfig"
    path.write_text(f"""apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://{address(0)}:{PORT}", certificate-authority: {machines.pki}/ca.crt}}}}]
users: [{{name: u, user: {{client-certificate: {machines.pki}/admin.crt, client-key: {machines.pki}/admin.key}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
""", encoding="utf-8")
    return path


def measure(args, count):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="keelson-members-", dir=args.dir))
    # There are no controllers, and so no ServiceAccounts for pods.
    machines = Machines(directory, pathlib.Path(args.programs) / "kube-controlplane", ["--disable-admission-plugins=ServiceAccount"],
                        count=count, plain=True)
    machines.start()
    for index in range(count):
        machines.await_ready(index)
    time.sleep(3)  # until what a server does at its start is done
    load = [args.api_load, "--kubeconfig", kubeconfig(machines), "--writes", args.writes, "--workers", args.workers, "--pods", 10,
            "--pid", machines.pid(0), "--pid", machines.etcd_pid(0)]
    out = subprocess.run([str(word) for word in load], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(f"{count} member{'s' if count > 1 else ''}: name, count, a second, p50 ms, p99 ms, CPU us each of the first machine")
    for line in out.splitlines():
        if line.startswith(SHOWN):
            print("  " + line, flush=True)
    machines.end()
    shutil.rmtree(directory)


def main():
    args = arguments()
    if args.count:
        return measure(args, args.count)
    for count in (1, 3):
        # All that is made there ends with it.
        subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv,
                        "--count", str(count)], check=True)


if __name__ == "__main__":
    main()
