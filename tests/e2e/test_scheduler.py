"""Two nodes: scheduling gates, topology spread, preemption; and nodectl's explanation."""
import json
import os
import pathlib
import unittest

from cluster import ROOT, Cluster, run

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {app}}}}}
spec:
  terminationGracePeriodSeconds: 0
  priorityClassName: {priority}
  schedulingGates: {gates}
  topologySpreadConstraints: {spread}
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    resources: {{requests: {{cpu: {cpu}}}}}
---
"""
CLASSES = "".join(f"""
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: {name}}}
value: {value}
---
""" for name, value in (("low", 10), ("high", 1000)))
SPREAD = ("[{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, "
          "labelSelector: {matchLabels: {app: spread}}}]")


def pod(name, app="x", priority="low", gates="[]", spread="[]", cpu="1m"):
    return POD.format(name=name, app=app, priority=priority, gates=gates, spread=spread, cpu=cpu)


class Scheduler(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=2, KEELSON_API_FLAGS="--scheduler-debug-port 10251")
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cls.cluster.apply(CLASSES)

    def tearDown(self):
        self.cluster.kubectl("delete", "pod", "--all", "--now")

    def node_of(self, name):
        return self.cluster.eventually(f"{name} has a node",
                                       lambda: self.cluster.jsonpath(".spec.nodeName", "pod", name), seconds=20)

    def condition(self, name):
        for condition in self.cluster.get("pod", name)["status"].get("conditions", []):
            if condition["type"] == "PodScheduled":
                return condition
        return {}

    def why(self, name, *args):
        nodectl = pathlib.Path(os.environ.get("KEELSON_BIN") or
                               ROOT / "build" / os.environ.get("KEELSON_PRESET", "release") / "bin") / "nodectl"
        return run(self.cluster.on_node("node1", [nodectl, "--kubeconfig", self.cluster.dev("kubeconfig").stdout.strip(), *args,
                                                 "why", "pod", f"default/{name}"]), check=False)

    def test_gates_hold_a_pod_back(self):
        self.cluster.apply(pod("gated", gates="[{name: example.com/wait}]"))
        self.cluster.eventually("the gate shows", lambda: self.condition("gated").get("reason") == "SchedulingGated")
        # Later pods do not wait for it.
        self.cluster.apply(pod("free"))
        self.node_of("free")
        self.assertEqual(self.cluster.jsonpath(".spec.nodeName", "pod", "gated"), "")
        self.assertIn("waiting for scheduling gates: example.com/wait", self.why("gated").stdout)
        self.cluster.kubectl("patch", "pod", "gated", "--type=json", "-p", '[{"op": "remove", "path": "/spec/schedulingGates"}]')
        self.node_of("gated")

    def test_pods_are_spread(self):
        names = [f"spread-{i}" for i in range(6)]
        self.cluster.apply("".join(pod(name, app="spread", spread=SPREAD) for name in names))
        nodes = [self.node_of(name) for name in names]
        self.assertEqual((nodes.count("node1"), nodes.count("node2")), (3, 3))

    def test_preemption_makes_room(self):
        nodes = self.cluster.get("nodes")["items"]
        room = min(int(node["status"]["allocatable"]["cpu"]) for node in nodes) * 1000
        most = f"{room * 7 // 10}m"
        self.cluster.apply(pod("low-1", cpu=most) + pod("low-2", cpu=most))
        self.assertEqual({self.node_of("low-1"), self.node_of("low-2")}, {"node1", "node2"})

        # A pod without higher priority waits, and the reason is reported.
        self.cluster.apply(pod("late", cpu=most))
        message = self.cluster.eventually("late is unschedulable", lambda: self.condition("late").get("message"))
        self.assertEqual(message, "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
                                  "2 No preemption victims found for incoming pod.")
        answer = self.why("late", "-o", "json")
        self.assertEqual(answer.returncode, 2, answer.stderr)
        told = {node["name"]: node for node in json.loads(answer.stdout)["scheduling"]["nodes"]}
        self.assertEqual({node["refusedBy"] for node in told.values()}, {"NodeResourcesFit"})
        self.assertIn(f"{room * 7 // 10} wanted", told["node1"]["numbers"])

        self.cluster.apply(pod("high", priority="high", cpu=most))
        self.node_of("high")
        left = {name for name in ("low-1", "low-2") if not self.cluster.kubectl("get", "pod", name, check=False).returncode}
        self.assertEqual(len(left), 1, left)
        reasons = self.cluster.eventually("the eviction is told", lambda: [
            event["message"] for event in self.cluster.get("events")["items"] if event["reason"] == "Preempted"])
        uid = self.cluster.jsonpath(".metadata.uid", "pod", "high")
        self.assertTrue(reasons[0].startswith(f"Preempted by pod {uid} on node "), reasons)
        self.assertEqual(self.cluster.jsonpath(".spec.nodeName", "pod", "late"), "")


if __name__ == "__main__":
    unittest.main()
