"""NetworkPolicies on two nodes: what they forbid fails and what they permit works, by pod address and by Service, from the
first packet of a pod on, and while kube-cni is down."""
import subprocess
import unittest

from cluster import Cluster, run

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: APP}}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  containers:
  - name: httpd
    image: localhost/busybox:1
    command: [sh, -c, 'mkdir /www && hostname > /www/index.html && exec httpd -f -p 8080 -h /www']
    ports: [{name: web, containerPort: 8080}]
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: server}
spec:
  selector: {app: server}
  ports: [{port: 80, targetPort: web}]
---
"""
DENY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {matchLabels: {app: server}}, policyTypes: [Ingress]}
---
"""
ALLOW = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: allow}
spec:
  podSelector: {matchLabels: {app: server}}
  ingress:
  - from: [{podSelector: {matchLabels: {app: friend}}}]
    ports: [{port: web}]
---
"""
EGRESS = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: egress}
spec:
  podSelector: {matchLabels: {app: stranger}}
  policyTypes: [Egress]
  egress: [{to: [{podSelector: {matchLabels: {app: friend}}}]}]
---
"""
# What a pod reaches at once when it begins, without a second attempt: nothing of the server.
HASTY = """
apiVersion: v1
kind: Pod
metadata: {name: hasty, labels: {app: hasty}}
spec:
  nodeName: node1
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  containers:
  - name: wget
    image: localhost/busybox:1
    command: [sh, -c, 'wget -q -T 2 -O - http://ADDRESS:8080/ && exit 1 || exit 0']
"""


class NetworkPolicyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=2)
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        pods = (("server", "server", "node1"), ("friend1", "friend", "node1"), ("friend2", "friend", "node2"),
                ("stranger1", "stranger", "node1"), ("stranger2", "stranger", "node2"))
        cls.cluster.apply(SERVICE + "".join(
            POD.replace("NAME", name).replace("APP", app).replace("NODE", node) for name, app, node in pods))
        cls.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=90s", *(f"pod/{name}" for name, _, _ in pods))
        cls.address = cls.cluster.jsonpath(".status.podIP", "pod", "server")
        cls.urls = (f"http://{cls.address}:8080/", f"http://{cls.cluster.jsonpath('.spec.clusterIP', 'service', 'server')}/")

    def tearDown(self):
        self.cluster.kubectl("delete", "networkpolicy", "--all")
        self.answers("stranger1", "stranger2")

    def fetch(self, place, url):
        return run(self.cluster.in_pod(place, ["curl", "-fsS", "-m", 1, url]), check=False)

    def answers(self, *places):
        for place in places:
            for url in self.urls:
                self.cluster.eventually(f"{url} to answer {place}", lambda p=place, u=url: self.fetch(p, u).stdout.strip() == "server", 20)

    def refuses(self, *places):
        for place in places:
            for url in self.urls:
                # 28: the time is up. A refusal would be 7.
                self.cluster.eventually(f"{url} to be closed to {place}", lambda p=place, u=url: self.fetch(p, u).returncode == 28, 20)

    def test_deny_then_allow(self):
        self.answers("friend1", "friend2", "stranger1", "stranger2")
        self.cluster.apply(DENY)
        self.refuses("friend1", "friend2", "stranger1", "stranger2")
        self.cluster.apply(ALLOW)
        self.answers("friend1", "friend2")
        self.refuses("stranger1", "stranger2")
        self.cluster.kubectl("label", "pod", "friend2", "app=stranger", "--overwrite")
        self.refuses("friend2")
        self.cluster.kubectl("label", "pod", "friend2", "app=friend", "--overwrite")
        self.answers("friend2")
        # The kubelet's probes come from the node.
        self.assertEqual(self.cluster.fetch_from("node1", self.urls[0]).strip(), "server")
        ready = self.cluster.jsonpath('.status.conditions[?(@.type=="Ready")].status', "pod", "server")
        self.assertEqual(ready, "True")

    def test_egress_of_pods_of_both_nodes(self):
        """Each node holds back what its own pods send, wherever it goes."""
        self.answers("stranger1", "stranger2")
        self.cluster.apply(EGRESS)
        self.refuses("stranger1", "stranger2")
        self.answers("friend1", "friend2")
        for stranger, friend in (("stranger1", "friend2"), ("stranger2", "friend1")):
            url = f"http://{self.cluster.jsonpath('.status.podIP', 'pod', friend)}:8080/"
            self.cluster.eventually(f"{friend} to answer {stranger}", lambda s=stranger, u=url: self.fetch(s, u).returncode == 0, 20)

    def test_from_the_first_packet_and_without_an_agent(self):
        self.cluster.apply(DENY)
        self.refuses("stranger1")
        self.cluster.apply(HASTY.replace("ADDRESS", self.address))
        self.cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", "pod/hasty")
        self.cluster.kubectl("delete", "pod", "hasty")
        self.cluster.kill("kube-cni", "node1")
        self.refuses("friend1", "friend2")
        self.cluster.apply(POD.replace("NAME", "late").replace("APP", "late").replace("NODE", "node1"))
        with self.assertRaises(subprocess.TimeoutExpired):
            self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/late", timeout=15)
        self.cluster.dev("start", "kube-cni")
        self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=90s", "pod/late")
        self.refuses("late", "friend1")
        self.cluster.kubectl("delete", "pod", "late")


if __name__ == "__main__":
    unittest.main()
