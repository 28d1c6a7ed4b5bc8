"""Two nodes: traffic between them, loss of a node, and restarts of all daemons under traffic."""
import contextlib
import json
import pathlib
import re
import secrets
import signal
import subprocess
import unittest

from cluster import HOST_IP, Cluster, run

GRACE = 10  # seconds without a heartbeat until a node is lost
NODE_IPS = {"node1": "192.168.77.1", "node2": "192.168.77.2"}

# One pod per node that reports over HTTP its name and the client, and echoes lines on port 7000. It tolerates all
# taints.
PINNED = r"""
apiVersion: v1
kind: Pod
metadata:
  name: on-NODE
  labels: {app: web}
  annotations: {kubernetes.io/ingress-bandwidth: 100M, kubernetes.io/egress-bandwidth: 100M}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  containers:
  - name: main
    image: localhost/busybox:1
    ports: [{containerPort: 8080, hostPort: 8081}]
    command:
    - sh
    - -c
    - |
      mkdir -p /www/cgi-bin
      cat > /www/cgi-bin/who <<'END'
      #!/bin/sh
      printf 'Content-Type: text/plain\r\n\r\n%s %s\n' "$HOSTNAME" "$REMOTE_ADDR"
      END
      chmod +x /www/cgi-bin/who
      nc -ll -p 7000 -e cat &
      echo started on NODE
      exec httpd -f -p 8080 -h /www
    readinessProbe: {httpGet: {path: /cgi-bin/who, port: 8080}, periodSeconds: 1}
---
"""
SERVICES = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app: web}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: echo, port: 7, targetPort: 7000}
---
"""
# Evicted from a lost node after two seconds.
MOBILE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: mobile}
spec:
  replicas: 4
  selector: {matchLabels: {app: mobile}}
  template:
    metadata: {labels: {app: mobile}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
      containers:
      - {name: main, image: localhost/busybox:1, command: [sleep, "100000"]}
"""


BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: mobile}
spec: {minAvailable: MIN, selector: {matchLabels: {app: mobile}}}
"""


# On the host network; creates a mount that the node and the other pod must see.
GIVER = r"""
apiVersion: v1
kind: Pod
metadata: {name: giver}
spec:
  nodeName: NODE
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sh, -c, "mkdir -p /shared/in && mount -t tmpfs in /shared/in && echo hello > /shared/in/word && exec sleep 1000"]
    securityContext: {privileged: true}
    volumeMounts: [{name: shared, mountPath: /shared, mountPropagation: Bidirectional}]
    lifecycle: {preStop: {exec: {command: [umount, /shared/in]}}}
    readinessProbe: {exec: {command: [test, -e, /shared/in/word]}, periodSeconds: 1}
  volumes: [{name: shared, hostPath: {path: SHARED, type: DirectoryOrCreate}}]
---
"""
TAKER = r"""
apiVersion: v1
kind: Pod
metadata: {name: taker}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sleep, "1000"]
    volumeMounts:
    - {name: shared, mountPath: /shared, mountPropagation: HostToContainer}
    - {name: shared, mountPath: /private}
  volumes: [{name: shared, hostPath: {path: SHARED, type: DirectoryOrCreate}}]
---
"""


class MultiNodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=2, KEELSON_NODE_GRACE=str(GRACE))
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cls.k = staticmethod(cls.cluster.kubectl)
        cls.cluster.apply("".join(PINNED.replace("NODE", node) for node in cls.cluster.nodes) + SERVICES + MOBILE)
        cls.k("wait", "--for=condition=Ready", "--timeout=60s", *(f"pod/on-{node}" for node in cls.cluster.nodes))
        cls.pod_ip = {node: cls.cluster.jsonpath(".status.podIP", "pod", f"on-{node}") for node in cls.cluster.nodes}
        service = cls.cluster.get("service", "web")["spec"]
        cls.cluster_ip = service["clusterIP"]
        cls.node_port = {port["name"]: port["nodePort"] for port in service["ports"]}

    def setUp(self):
        """Spreads the movable pods over both nodes, whatever the previous test did."""
        self.k("rollout", "status", "deployment/mobile", "--timeout=60s")
        if not all(self.pods_on(node, "mobile") for node in self.cluster.nodes):
            self.k("rollout", "restart", "deployment/mobile")
            self.k("rollout", "status", "deployment/mobile", "--timeout=60s")

    # ---- requests ----
    def who(self, place, url, word=""):
        """Returns who answers, and which client address it saw."""
        name, seen = self.cluster.fetch_from(place, f"{url}/cgi-bin/who?{word}").split()
        return name, seen.removeprefix("[::ffff:").removeprefix("::ffff:").rstrip("]")

    def assert_all_answer(self, place, url):
        names = set()

        def both():
            names.add(self.who(place, url)[0])
            return len(names) == 2

        self.cluster.eventually(f"both pods to answer {place} at {url}", both, seconds=20)

    def node(self, name):
        node = self.cluster.get("node", name)
        ready = next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready")
        taints = {(t["key"].split("/")[-1], t["effect"]) for t in node["spec"].get("taints", [])}
        return ready, taints

    def pods_on(self, node, app):
        return [p for p in self.cluster.get("pods", "-l", f"app={app}")["items"] if p["spec"].get("nodeName") == node]

    def container(self, pod):
        status = self.cluster.get("pod", pod)["status"]["containerStatuses"][0]
        return status["containerID"], status["restartCount"]

    # ---- traffic ----
    def assert_traffic_flows(self):
        """Between pods on different nodes, and from everywhere to the Service in all its forms."""
        for here, there in (("node1", "node2"), ("node2", "node1")):
            name, seen = self.who(f"on-{here}", f"http://{self.pod_ip[there]}:8080")
            self.assertEqual((name, seen), (f"on-{there}", self.pod_ip[here]), "pods see each other's own address")
            self.assertEqual(self.who(here, f"http://{self.pod_ip[there]}:8080")[0], f"on-{there}")
        for place in (*self.cluster.nodes, *(f"on-{node}" for node in self.cluster.nodes)):
            self.assert_all_answer(place, f"http://{self.cluster_ip}")
            for address in NODE_IPS.values():
                self.assert_all_answer(place, f"http://{address}:{self.node_port['http']}")

    def test_traffic_between_nodes(self):
        self.assert_traffic_flows()
        # Also from outside the cluster: the machine around the nodes.
        for node, address in NODE_IPS.items():
            self.assertIn("on-node", self.cluster.fetch(f"http://{address}:{self.node_port['http']}/cgi-bin/who"))
            self.assertIn(f"on-{node}", self.cluster.fetch(f"http://{address}:8081/cgi-bin/who"))
            for place in (*self.cluster.nodes, "on-node1", "on-node2"):
                self.assertEqual(self.who(place, f"http://{address}:8081")[0], f"on-{node}")
        # Traffic that leaves the cluster has the node's address.
        with subprocess.Popen(self.cluster.inside(["python3", "-c", PEER_NAME, HOST_IP]), stdout=subprocess.PIPE, text=True) as server:
            self.assertEqual(server.stdout.readline(), "listening\n")
            run(self.cluster.in_pod("on-node2", ["curl", "-fsS", "-m", "5", f"http://{HOST_IP}:8000/"]))
            self.assertEqual(server.stdout.readline().strip(), NODE_IPS["node2"])

    # ---- host access of pods ----
    def test_pods_share_their_nodes_name_and_mounts(self):
        shared = self.cluster.state / "nodes/node2/shared"

        def in_pod(pod, *command):
            return self.k("exec", pod, "--", *command, check=False).stdout.strip()

        for pod, manifest in (("taker", TAKER), ("giver", GIVER)):  # the mount appears after the taker has started
            self.cluster.apply(manifest.replace("NODE", "node2").replace("SHARED", str(shared)))
            self.addCleanup(self.k, "delete", "pod", pod, "--wait")
            self.k("wait", "--for=condition=Ready", "--timeout=60s", f"pod/{pod}")
        self.assertEqual(in_pod("giver", "hostname"), "node2")
        self.assertEqual(in_pod("taker", "hostname"), "taker")
        self.assertEqual(self.cluster.dev("node", "exec", "2", "hostname").stdout.strip(), "node2")
        self.assertEqual(in_pod("taker", "cat", "/shared/in/word"), "hello")
        self.assertEqual(in_pod("taker", "ls", "/private/in"), "", "a volume without propagation")
        self.assertFalse((shared / "in/word").exists(), "the node's mounts are its own")

    def test_kubectl_reaches_pods_on_every_node(self):
        for node in self.cluster.nodes:
            self.assertEqual(self.k("logs", f"on-{node}").stdout, f"started on {node}\n")
            self.assertEqual(self.k("exec", "-i", f"on-{node}", "--", "cat", stdin="there and back\n").stdout, "there and back\n")
            forward = self.cluster.start_kubectl("port-forward", f"pod/on-{node}", ":8080", stdout=subprocess.PIPE)
            try:
                port = re.search(r"127\.0\.0\.1:(\d+)", forward.stdout.readline()).group(1)
                self.assertIn(f"on-{node}", self.cluster.fetch(f"http://127.0.0.1:{port}/cgi-bin/who", timeout=10))
            finally:
                forward.send_signal(signal.SIGTERM)
                forward.wait()
                forward.stdout.close()

    def devices(self):
        """The device of each node's route to the other one's pod."""
        found = []
        for here, there in (("node1", "node2"), ("node2", "node1")):
            route = run(self.cluster.on_node(here, ["ip", "-j", "route", "get", self.pod_ip[there]]))
            found.append(json.loads(route.stdout)[0]["dev"])
        return found

    def run_agents(self, **settings):
        self.cluster.dev("stop", "kube-cni")
        self.cluster.dev("start", "kube-cni", **settings)

    def run_agents_for_this_test(self, **settings):
        self.assertEqual(self.devices(), ["eth0", "eth0"])
        self.addCleanup(self.cluster.eventually, "plain routes again", lambda: self.devices() == ["eth0", "eth0"])
        self.addCleanup(self.run_agents)
        self.run_agents(**settings)

    def test_vxlan(self):
        self.run_agents_for_this_test(KEELSON_CNI_MODE="vxlan")
        self.cluster.eventually("routes through VXLAN", lambda: "eth0" not in self.devices())
        for node, device in zip(self.cluster.nodes, self.devices()):
            self.assertIn("vxlan id", run(self.cluster.on_node(node, ["ip", "-d", "link", "show", device])).stdout)
        self.assert_traffic_flows()

    def wire(self):
        """Captures node1's link while one pod sends a word to the other: the number of ESP packets, and where the word was visible."""
        link = f"kn{self.cluster.id}n1"
        with subprocess.Popen(self.cluster.inside(["python3", "-c", CAPTURE, link, "open-sesame"]), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as capture:
            self.assertEqual(capture.stdout.readline(), "listening\n")
            self.assertEqual(self.who("on-node1", f"http://{self.pod_ip['node2']}:8080", "open-sesame")[0], "on-node2")
            return json.loads(capture.communicate()[0])

    def test_ipsec(self):
        self.assertGreater(self.wire()["words"], 0)
        state = ["src", "192.0.2.1", "dst", "192.0.2.2", "proto", "esp", "spi", "1"]
        cipher = ["aead", "rfc4106(gcm(aes))", f"0x{'01' * 36}", "128"]
        if run(self.cluster.inside(["ip", "xfrm", "state", "add", *state, *cipher]), check=False).returncode != 0:
            self.skipTest("this kernel has no ESP with AES-GCM")
        run(self.cluster.inside(["ip", "xfrm", "state", "delete", *state]))
        secret = self.cluster.dir / "ipsec.secret"
        secret.write_text(secrets.token_hex(32) + "\n")
        secret.chmod(0o600)
        self.run_agents_for_this_test(KEELSON_CNI_FLAGS=f"--encryption ipsec --ipsec-key-file {secret}")
        self.cluster.eventually("ESP", lambda: self.wire()["esp"] > 0)
        self.assertEqual(self.wire()["words"], 0)
        self.assert_traffic_flows()

    # ---- a node is lost ----
    def lose(self, node, how):
        """Removes the node, and checks that the cluster recovers. Returns the evicted pods."""
        leaving = self.pods_on(node, "mobile")
        self.assertTrue(leaving)
        self.addCleanup(self.cluster.dev, "up")
        self.cluster.dev("node", how, node)
        self.cluster.eventually("the node to be Unknown", lambda: self.node(node)[0] == "Unknown", GRACE + 10)
        self.cluster.eventually("taints", lambda: self.node(node)[1] == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")})
        names = {p["metadata"]["name"] for p in leaving}

        def evicted():
            return all("deletionTimestamp" in p["metadata"] for p in self.pods_on(node, "mobile"))

        self.cluster.eventually("its pods to be evicted", evicted, 20)
        self.k("wait", "--for=jsonpath={.status.availableReplicas}=4", "--timeout=60s", "deployment/mobile")
        other = next(n for n in self.cluster.nodes if n != node)
        here = {p["metadata"]["name"] for p in self.pods_on(other, "mobile")}
        self.assertEqual(len(here), 4)
        # No kubelet confirms their end: they stay until the node is back.
        self.assertEqual({p["metadata"]["name"] for p in self.pods_on(node, "mobile")}, names)
        # The Service uses the remaining node.
        for _ in range(10):
            self.assertEqual(self.who(other, f"http://{self.cluster_ip}")[0], f"on-{other}")
        self.assertEqual(self.node(other), ("True", set()))
        return leaving

    def assert_back(self, node):
        self.cluster.eventually("the node to be Ready without taints", lambda: self.node(node) == ("True", set()), 60)
        self.cluster.eventually("stale pods to be gone", lambda: not self.pods_on(node, "mobile"), 60)
        self.k("wait", "--for=condition=Ready", "--timeout=30s", f"pod/on-{node}")
        self.pod_ip[node] = self.cluster.jsonpath(".status.podIP", "pod", f"on-{node}")
        self.assert_traffic_flows()

    def test_node_stopped(self):
        identity, restarts = self.container("on-node2")
        self.lose("node2", "stop")
        self.cluster.dev("node", "start", "node2")
        self.assert_back("node2")
        after, restarts_after = self.container("on-node2")
        self.assertNotEqual(identity, after)
        self.assertEqual(restarts_after, restarts + 1)

    def test_node_cut_off(self):
        before = self.container("on-node2")
        leaving = self.lose("node2", "cut")
        # Nothing can stop its pods, so they continue, and reach each other.
        processes = {p["metadata"]["name"]: self.cluster.pod_processes(p) for p in leaving}
        self.assertTrue(all(processes.values()), processes)
        pinned = self.cluster.get("pod", "on-node2")
        self.assertIn("on-node2", self.cluster.fetch_from("node2", f"http://{pinned['status']['podIP']}:8080/cgi-bin/who"))
        self.cluster.dev("node", "heal", "node2")
        self.assert_back("node2")
        self.assertEqual(before, self.container("on-node2"))
        for pod in leaving:
            self.assertEqual(self.cluster.pod_processes(pod), [])

    # ---- a node is emptied ----
    def budget(self, least):
        self.cluster.apply(BUDGET.replace("MIN", str(least)))
        allowed = str(4 - least)
        self.cluster.eventually("the budget to be counted",
                                lambda: self.cluster.jsonpath(".status.disruptionsAllowed", "pdb", "mobile") == allowed)

    def drain(self, node, *flags):
        return self.k("drain", node, "--pod-selector=app=mobile", *flags, check=False)

    def test_drain_with_a_budget(self):
        self.addCleanup(self.k, "delete", "pdb", "mobile")
        self.addCleanup(self.k, "uncordon", "node2")
        self.budget(4)
        refused = self.drain("node2", "--timeout=1s")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("Cannot evict pod as it would violate the pod's disruption budget.", refused.stderr)
        self.assertTrue(self.pods_on("node2", "mobile"))
        self.assertEqual(self.node("node2"), ("True", {("unschedulable", "NoSchedule")}))

        self.budget(3)
        watch = self.cluster.start_kubectl("get", "deployment/mobile", "--watch", "-o",
                                           r"jsonpath={.status.availableReplicas}{'\n'}", stdout=subprocess.PIPE)
        for end in (watch.stdout.close, watch.wait, watch.kill):
            self.addCleanup(end)
        self.assertEqual(watch.stdout.readline().strip(), "4")
        drained = self.drain("node2", "--timeout=60s")
        self.assertEqual(drained.returncode, 0, drained.stderr)
        self.k("rollout", "status", "deployment/mobile", "--timeout=60s")
        watch.send_signal(signal.SIGTERM)
        available = [int(line or 0) for line in watch.stdout.read().splitlines()]
        self.assertIn(3, available)
        self.assertGreaterEqual(min(available), 3, "the budget holds at every moment")
        self.assertEqual(self.pods_on("node2", "mobile"), [])
        self.assertEqual(len(self.pods_on("node1", "mobile")), 4)
        self.assertEqual(self.k("get", "pod", "on-node2", "-o", "name").stdout.strip(), "pod/on-node2", "it was not asked to go")

    # ---- daemons restart ----
    @contextlib.contextmanager
    def traffic(self):
        """Each pod talks to the other one, to the Service, and to the other node's port; no request may fail."""
        clients = {}
        for here, there in (("node1", "node2"), ("node2", "node1")):
            targets = [f"{self.pod_ip[there]}:7000", f"{self.cluster_ip}:7", f"{NODE_IPS[there]}:{self.node_port['echo']}"]
            clients[here] = subprocess.Popen(
                self.cluster.in_pod(f"on-{here}", ["python3", pathlib.Path(__file__).with_name("traffic.py"), *targets]),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(clients[here].communicate)
            self.addCleanup(clients[here].kill)
        for client in clients.values():
            self.assertEqual(client.stdout.readline(), "ready\n")
        before = {node: self.container(f"on-{node}") for node in self.cluster.nodes}
        yield
        for node, client in clients.items():
            printed, _ = client.communicate(timeout=30)
            happened = json.loads(printed)
            print(f"\n{node}: {happened}")
            self.assertEqual(happened["failures"], [])
            self.assertGreater(min(*happened["held"].values(), *happened["fresh"].values()), 10)
        self.assertEqual(before, {node: self.container(f"on-{node}") for node in self.cluster.nodes})

    def kill_and_start(self, daemon, node, **settings):
        self.cluster.kill(daemon, node)
        self.cluster.dev("start", daemon, node, **settings)

    def test_rolling_restart_under_traffic(self):
        with self.traffic():
            for node in reversed(self.cluster.nodes):
                for daemon in ("kube-cni", "kube-proxy", "kubelet", "containerd"):
                    self.kill_and_start(daemon, node)
            self.kill_and_start("kube-controlplane", "node1")
            # Everything works again: a change takes effect on both nodes.
            self.k("rollout", "restart", "deployment/mobile")
            self.k("rollout", "status", "deployment/mobile", "--timeout=60s")

    def test_vxlan_outlives_its_agents(self):
        settings = {"KEELSON_CNI_MODE": "vxlan"}
        self.run_agents_for_this_test(**settings)
        self.cluster.eventually("routes through VXLAN", lambda: "eth0" not in self.devices())
        with self.traffic():
            for node in self.cluster.nodes * 3:
                self.kill_and_start("kube-cni", node, **settings)


# Reports the peer of each accepted connection.
PEER_NAME = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204); self.end_headers()
    def log_message(self, *args):
        print(self.client_address[0], flush=True)
server = http.server.HTTPServer((sys.argv[1], 8000), Handler)
print("listening", flush=True)
server.handle_request()
"""

# Reads packets on a link until its input ends.
CAPTURE = """
import json, select, socket, sys
link, word = sys.argv[1], sys.argv[2].encode()
packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))  # all protocols
packets.bind((link, 3))
print("listening", flush=True)
seen = {"esp": 0, "words": 0}
while True:
    ready = select.select([packets, sys.stdin], [], [])[0]
    if packets in ready:
        data, address = packets.recvfrom(65536)
        seen["esp"] += address[1] == 0x800 and data[9] == 50
        seen["words"] += word in data
    elif not sys.stdin.readline():
        break
print(json.dumps(seen))
"""


if __name__ == "__main__":
    unittest.main()
