"""kill -9 of each daemon, and of etcd: no container restarts, no connection breaks, no object is lost."""
import subprocess
import unittest

from cluster import Cluster, kill, run

# Answers each request with a line on one long connection, so that a break is visible.
ECHO = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo}
spec:
  replicas: 2
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers:
      - name: echo
        image: localhost/busybox:1
        command: [nc, -ll, -p, "7000", -e, cat]
---
apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  selector: {app: echo}
  ports: [{port: 7}]
"""
ECHO = ECHO.replace("ports: [{port: 7}]", "ports: [{port: 7, targetPort: 7000}]")

CLIENT = """
import socket, sys
s = socket.create_connection((sys.argv[1], 7), timeout=10)
for line in sys.stdin:
    s.sendall(line.encode())
    print(s.makefile().readline(), end="", flush=True)
"""


class RecoveryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cls.cluster.apply(ECHO)
        cls.cluster.kubectl("rollout", "status", "deployment/echo", "--timeout=90s")
        address = cls.cluster.jsonpath(".spec.clusterIP", "service", "echo")
        cls.cluster.eventually("the echo Service", lambda: cls.talks_once(address))
        cls.client = subprocess.Popen(cls.cluster.inside(["python3", "-c", CLIENT, address]), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.client.wait)
        cls.addClassCleanup(cls.client.kill)

    @classmethod
    def talks_once(cls, address):
        result = subprocess.run(cls.cluster.inside(["python3", "-c", CLIENT, address]), input="ping\n", capture_output=True,
                                text=True, timeout=15)
        return result.stdout == "ping\n"

    def say(self, text):
        self.client.stdin.write(text + "\n")
        self.client.stdin.flush()
        self.assertEqual(self.client.stdout.readline(), text + "\n", "the established connection broke")

    def containers(self):
        """Every container with its ID and restart count, to detect restarts."""
        return {(p["metadata"]["name"], s["containerID"], s["restartCount"])
                for p in self.cluster.get("pods", "-A")["items"] for s in p["status"].get("containerStatuses", [])}

    def objects(self):
        kinds = "pods,services,deployments,replicasets,configmaps,secrets,serviceaccounts,endpointslices,namespaces,nodes"
        return {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"], o["metadata"]["uid"])
                for o in self.cluster.get(kinds, "-A")["items"]}

    def kill_and_recover(self, daemon, pid):
        self.say(f"before {daemon}")
        containers, objects = self.containers(), self.objects()
        kill(pid)
        self.say(f"without {daemon}")
        self.cluster.dev("up")
        self.cluster.eventually(f"{daemon} to be healthy", lambda: "unhealthy" not in self.cluster.dev("status").stdout)
        self.say(f"after {daemon}")
        # The cluster converges: a change takes effect everywhere.
        name = f"after-{daemon}"
        self.cluster.kubectl("create", "deployment", name, "--image=registry.k8s.io/pause:3.10")
        self.cluster.kubectl("rollout", "status", f"deployment/{name}", "--timeout=90s")
        self.cluster.kubectl("delete", "deployment", name, "--wait=true")
        self.cluster.eventually("the pod to be gone", lambda: self.containers() == containers)
        self.assertEqual(self.containers(), containers)
        self.assertLessEqual(objects, self.objects())

    def test_containerd(self):
        self.kill_and_recover("containerd", self.cluster.pid("containerd"))

    def test_control_plane(self):
        self.kill_and_recover("kube-controlplane", self.cluster.pid("kube-controlplane"))

    def test_etcd(self):
        parent = self.cluster.pid("kube-controlplane")
        etcd = run(["pgrep", "-x", "-P", str(parent), "etcd"]).stdout.split()
        self.assertEqual(len(etcd), 1, "the control plane runs one etcd")
        self.kill_and_recover("etcd", int(etcd[0]))

    def test_kubelet(self):
        self.kill_and_recover("kubelet", self.cluster.pid("kubelet"))

    def test_kube_proxy(self):
        self.kill_and_recover("kube-proxy", self.cluster.pid("kube-proxy"))

    def test_kube_cni(self):
        self.kill_and_recover("kube-cni", self.cluster.pid("kube-cni"))


if __name__ == "__main__":
    unittest.main()
