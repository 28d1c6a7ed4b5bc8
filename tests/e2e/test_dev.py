"""./dev itself: up repairs and leaves alone, nodes are added, clusters do not meet, down leaves nothing (which every
end-to-end test checks)."""
import unittest

from cluster import Cluster, run

DAEMONS = ("containerd", "kubelet", "kube-proxy", "kube-cni")


class DevTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=2)
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()

    def pids(self):
        return {(node, daemon): self.cluster.pid(daemon, node) for node in self.cluster.nodes for daemon in DAEMONS}

    def test_up_starts_what_has_died_and_nothing_else(self):
        before = self.pids()
        self.cluster.dev("up")
        self.assertEqual(self.pids(), before)
        self.cluster.kill("kube-cni", "node2")
        self.cluster.dev("node", "cut", "node1")
        status = self.cluster.dev("status").stdout
        self.assertRegex(status, r"node2 +kube-cni +- +stopped")
        self.assertRegex(status, r"node1 +cut off")
        self.cluster.dev("up")
        changed = {key for key, pid in self.pids().items() if pid != before[key]}
        self.assertEqual(changed, {("node2", "kube-cni")})
        self.assertNotRegex(self.cluster.dev("status").stdout, "stopped|unhealthy|cut off")

    def test_stop_and_start_of_a_daemon(self):
        before = self.pids()
        self.cluster.dev("stop", "kube-proxy", "2")
        self.assertRegex(self.cluster.dev("status").stdout, r"node2 +kube-proxy +- +stopped")
        self.cluster.dev("start", "kube-proxy")  # on all nodes; a running one stays
        changed = {key for key, pid in self.pids().items() if pid != before[key]}
        self.assertEqual(changed, {("node2", "kube-proxy")})

    def test_node_exec(self):
        addresses = self.cluster.dev("node", "exec", "2", "ip", "-br", "addr", "show", "eth0").stdout
        self.assertIn("192.168.77.2/24", addresses)
        self.assertEqual(self.cluster.dev("node", "exec", "1", "sh", "-c", "exit 3", check=False).returncode, 3)
        self.assertIn("no such node: 9", self.cluster.dev("node", "exec", "9", "true", check=False).stderr)

    def test_nodes_are_added_and_not_taken_away(self):
        refused = self.cluster.dev("up", "--nodes", "1", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("./dev down first", refused.stderr)
        self.cluster.dev("up", "--nodes", "3")
        self.assertRegex(self.cluster.kubectl("get", "nodes").stdout, "node3 +Ready")
        self.cluster.dev("images", "import", self.cluster.state / "images/pause.tar")
        self.cluster.dev("up")  # knows all three
        self.assertEqual(self.cluster.dev("status").stdout.count("kubelet.log"), 3)

    def test_another_cluster_beside_it(self):
        """On the same machine, without an outer namespace of its own."""
        settings = dict(KEELSON_DIR=str(self.cluster.dir / "other"), KEELSON_NODE_SUBNET="")
        self.addCleanup(self.cluster.dev, "down", **settings)
        self.cluster.dev("up", "--nodes", "1", **settings)
        kubeconfig = self.cluster.dev("kubeconfig", **settings).stdout.strip()
        nodes = run(self.cluster.kubectl_args("--kubeconfig", kubeconfig, "get", "nodes", "-o", "wide")).stdout
        self.assertRegex(nodes, r"node1 +Ready .* 192\.168\.78\.1 ")
        self.cluster.dev("down", **settings)
        self.assertNotIn("unhealthy", self.cluster.dev("status").stdout)
        self.assertIn("192.168.77.1", self.cluster.kubectl("get", "nodes", "-o", "wide").stdout)


if __name__ == "__main__":
    unittest.main()
