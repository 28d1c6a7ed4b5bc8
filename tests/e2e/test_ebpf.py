"""Services in kube-proxy's mode ebpf: at the sockets of pods and the node, with and without a running kube-proxy."""
import json
import os
import pathlib
import time
import unittest

from cluster import ROOT, Cluster, run

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sh, -c, "mkdir /www; hostname > /www/who; exec httpd -f -p 8080 -h /www"]
    readinessProbe: {httpGet: {path: /who, port: 8080}, periodSeconds: 1}
---
"""
SERVICES = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
---
apiVersion: v1
kind: Service
metadata: {name: empty}
spec: {selector: {app: nobody}, ports: [{port: 80}]}
"""


def unified():
    """The mount point of cgroup2."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line:
            return pathlib.Path(line.split()[4])
    raise unittest.SkipTest("no cgroup2")


class EbpfTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # All children of this process are below this cgroup: exactly the cluster's processes.
        root = unified()
        cls.cgroup = root / f"keelson-e2e-{os.getpid()}"
        cls.pins = pathlib.Path(f"/tmp/keelson-e2e-pins-{os.getpid()}")
        cls.before = root / next(
            line[3:].strip().lstrip("/") for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
            if line.startswith("0::"))
        cls.cgroup.mkdir()
        cls.addClassCleanup(cls.leave)
        cls.pins.mkdir()
        run(["mount", "-t", "bpf", "bpf", cls.pins])
        cls.enter()
        cls.cluster = Cluster(KEELSON_PROXY_FLAGS=f"--proxy-mode=ebpf --ebpf-cgroup={cls.cgroup} --ebpf-pin-directory={cls.pins}")
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cls.cluster.apply("".join(PODS.replace("NAME", f"web-{i}") for i in (1, 2)) + SERVICES)
        for pod in ("web-1", "web-2"):
            cls.cluster.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=60s")
        cls.address = cls.cluster.jsonpath(".spec.clusterIP", "service", "web")

    @classmethod
    def enter(cls):
        (cls.cgroup / "cgroup.procs").write_text(str(os.getpid()))

    @classmethod
    def leave(cls):
        (cls.before / "cgroup.procs").write_text(str(os.getpid()))
        run(["umount", cls.pins], check=False)
        cls.pins.rmdir()
        for _ in range(100):  # until the cluster's last process is gone
            try:
                return cls.cgroup.rmdir()
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"processes stay in {cls.cgroup}")

    def ask(self, place, address, port=80):
        """Returns who answers in the network of a pod, or of the node (None)."""
        where = self.cluster.on_node("node1", []) if place is None else self.cluster.in_pod(place, [])
        return run([*where, "curl", "-s", "-S", "-m", "3", f"http://{address}:{port}/who"], check=False)

    def answers(self, place, address, port=80):
        got = set()
        for _ in range(24):
            result = self.ask(place, address, port)
            self.assertEqual(result.returncode, 0, f"{place}: {result.stderr}")
            got.add(result.stdout.strip())
        return got

    def tracked(self):
        """Connections to the Service that the node translated."""
        return [line for line in run(self.cluster.on_node("node1", ["cat", "/proc/net/nf_conntrack"]), check=False).stdout.splitlines()
                if f"dst={self.address} " in line]

    def test_served_at_sockets(self):
        self.cluster.eventually("the Service answers", lambda: self.ask("web-1", self.address).returncode == 0)
        for place in ("web-1", "web-2", None):
            self.assertEqual(self.answers(place, self.address), {"web-1", "web-2"}, place)
        self.assertEqual(self.tracked(), [])
        # Other clients depend on the rules.
        node = self.cluster.env["KEELSON_NODE_IP"]
        self.assertEqual(self.answers(None, node, 30080), {"web-1", "web-2"})
        empty = self.cluster.jsonpath(".spec.clusterIP", "service", "empty")
        for place in ("web-1", None):
            self.assertEqual(self.ask(place, empty).returncode, 7, "curl's code for what is refused")

    def test_nodectl_tells_of_sockets_and_rules(self):
        programs = pathlib.Path(self.cluster.env.get("KEELSON_BIN") or ROOT / "build" / self.cluster.env.get("KEELSON_PRESET", "release") / "bin")
        if not (programs / "nodectl").exists():
            self.skipTest(f"no nodectl in {programs}")
        def nodectl(*words):
            return json.loads(run(self.cluster.on_node("node1", [programs / "nodectl", "-o", "json", *words,
                                                                 f"--ebpf-pin-directory={self.pins}"])).stdout)
        said = nodectl("proxy", "dump")
        found = [one for one in said["services"] if one.get("address") == self.address and one.get("port") == 80]
        self.assertEqual([(one["mode"], one.get("from"), one["verdict"], len(one["endpoints"])) for one in found],
                         [("ebpf", "sockets", "serves", 2), ("ebpf", None, "serves", 2)])
        self.assertEqual(said["problems"], [])
        outside = [one for one in said["services"] if one.get("from") == "devices"]
        self.assertEqual([(one["port"], len(one["endpoints"])) for one in outside], [(30080, 2)])
        devices = {one["name"]: (one["fromOutside"], one["toOutside"]) for one in said["outside"][0]["devices"]}
        self.assertEqual(devices["uplink0"], (True, True))
        for source, first in ((["pod", "default/web-1"], "ebpf connect4"), (["host"], "ebpf connect4"), (["203.0.113.9"], "ebpf from_outside uplink0")):
            said = nodectl("--kubeconfig", self.cluster.env["KUBECONFIG"], "trace", "service", "default/web", "--from", *source)
            self.assertEqual([path["problems"] for path in said["paths"]], [[] for _ in said["paths"]], source)
            for path in said["paths"]:
                self.assertEqual((path["verdict"], len(path["backends"])), ("Delivered", 2), source)
                self.assertEqual(path["steps"][0]["where"], first)

    def test_serves_on_without_kube_proxy(self):
        self.cluster.kill("kube-proxy")
        self.addCleanup(self.cluster.dev, "start", "kube-proxy")
        self.assertEqual(self.answers("web-1", self.address), {"web-1", "web-2"})
        self.cluster.dev("start", "kube-proxy")
        self.assertEqual(self.answers("web-1", self.address), {"web-1", "web-2"})
        self.cluster.kubectl("label", "pod", "web-2", "app=other", "--overwrite")
        self.addCleanup(self.cluster.kubectl, "label", "pod", "web-2", "app=web", "--overwrite")
        self.cluster.eventually("one endpoint less", lambda: self.answers("web-1", self.address) == {"web-1"})
        self.assertEqual(self.tracked(), [])


if __name__ == "__main__":
    unittest.main()
