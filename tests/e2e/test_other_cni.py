"""The reference CNI plugins from Debian's package instead of ours. One node has its pods on a bridge, the other uses
point-to-point links."""
import json
import os
import unittest

from cluster import Cluster, run

PLUGINS = "/usr/lib/cni"
NODE_IPS = {"node1": "192.168.77.1", "node2": "192.168.77.2"}
HOST_PORT = 8081

POD = """
apiVersion: v1
kind: Pod
metadata: {name: on-NODE, labels: {app: web}}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  containers:
  - name: httpd
    image: localhost/busybox:1
    command: [sh, -c, 'mkdir /www && hostname > /www/index.html && exec httpd -f -p 8080 -h /www']
    ports: [{containerPort: 8080, hostPort: 8081}]
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
"""


def configuration(plugin, pod_cidr, data_dir):
    """Addresses from the node's range on the containers' interfaces; port mappings."""
    ipam = {"type": "host-local", "dataDir": str(data_dir), "ranges": [[{"subnet": pod_cidr}]], "routes": [{"dst": "0.0.0.0/0"}]}
    interface = {"type": plugin, "ipam": ipam}
    if plugin == "bridge":
        interface.update(bridge="cni0", isGateway=True, hairpinMode=True)
    return {"cniVersion": "1.0.0", "name": "reference",
            "plugins": [interface, {"type": "portmap", "capabilities": {"portMappings": True}}]}


@unittest.skipUnless(os.path.exists(f"{PLUGINS}/ptp"), f"{PLUGINS} has no reference plugins: install containernetworking-plugins")
class OtherCniTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=2, KEELSON_CNI="none", KEELSON_CNI_BIN_DIR=PLUGINS)
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cidr = {node: cls.cluster.eventually(f"the pod CIDR of {node}", lambda n=node: cls.cluster.jsonpath(".spec.podCIDR", "node", n))
                for node in cls.cluster.nodes}
        for here, there, plugin in (("node1", "node2", "bridge"), ("node2", "node1", "ptp")):
            run(cls.cluster.on_node(here, ["ip", "route", "add", cidr[there], "via", NODE_IPS[there]]))
            directory = cls.cluster.state / "nodes" / here
            file = directory / "conf/cni/10-reference.conflist"
            file.with_suffix(".new").write_text(json.dumps(configuration(plugin, cidr[here], directory / "run/host-local")))
            file.with_suffix(".new").rename(file)
        cls.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "node/node1", "node/node2")
        cls.cluster.apply("".join(POD.replace("NODE", node) for node in cls.cluster.nodes) + SERVICE)
        cls.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/on-node1", "pod/on-node2")

    def answers(self, place, url):
        return self.cluster.eventually(f"{url} to answer {place}", lambda: self.cluster.fetch_from(place, url).strip(), 15)

    def test_pods_reach_each_other(self):
        for here, there in (("node1", "node2"), ("node2", "node1")):
            address = self.cluster.jsonpath(".status.podIP", "pod", f"on-{there}")
            for place in (f"on-{here}", here, there):
                self.assertEqual(self.answers(place, f"http://{address}:8080/"), f"on-{there}")

    def test_services(self):
        service = self.cluster.get("service", "web")["spec"]
        urls = [f"http://{service['clusterIP']}/"] + [f"http://{ip}:{service['ports'][0]['nodePort']}/" for ip in NODE_IPS.values()]
        for url in urls:
            for place in ("node1", "node2", "on-node1", "on-node2"):
                seen = set()
                self.cluster.eventually(f"both pods to answer {place} at {url}",
                                        lambda: seen.add(self.answers(place, url)) or len(seen) == 2, 20)

    def test_host_ports(self):
        for node, ip in NODE_IPS.items():
            for place in ("node1", "node2", "on-node1", "on-node2"):
                self.assertEqual(self.answers(place, f"http://{ip}:{HOST_PORT}/"), f"on-{node}")

    def test_a_pod_gives_back_what_it_had(self):
        """DEL reaches the plugins: the address is released and the host port is free."""
        for node in self.cluster.nodes:
            name = f"passing-{node}"
            self.cluster.apply(POD.replace("on-NODE", name).replace("NODE", node).replace("8081", "8082").replace("app: web", "app: passing"))
            self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", f"pod/{name}")
            address = self.cluster.jsonpath(".status.podIP", "pod", name)
            store = self.cluster.state / "nodes" / node / "run/host-local/reference" / address
            self.assertTrue(store.exists())
            self.assertEqual(self.answers("node1", f"http://{NODE_IPS[node]}:8082/"), name)
            self.cluster.kubectl("delete", "pod", name, "--wait=true")
            self.cluster.eventually("the address to be free", lambda: not store.exists())
            refused = ["curl", "-sS", "-m", "2", f"http://{NODE_IPS[node]}:8082/"]
            self.cluster.eventually("the port to be free",
                                    lambda: run(self.cluster.on_node("node1", refused), check=False).returncode == 7)


if __name__ == "__main__":
    unittest.main()
