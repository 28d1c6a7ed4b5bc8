"""A node whose disk, then whose memory runs short: who has to go, what the node says, and how it comes back.

The kubelet's directory is a file system of 200 MiB, so that a pod can fill it.
"""
import json
import unittest

from cluster import Cluster, run

IMAGE = "localhost/busybox:1"
DISK = "--eviction-hard nodefs.available<64Mi --eviction-pressure-transition-period 5s"
# More than any machine has free, so the threshold is met while the kubelet runs with it.
MEMORY = "--eviction-hard memory.available<99% --eviction-pressure-transition-period 5s"
TAINT = "node.kubernetes.io/{}-pressure"


def pod(name, script="sleep 100000", **spec):
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "terminationGracePeriodSeconds": 1, "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [{"name": "main", "image": IMAGE, "command": ["sh", "-c", script],
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}]}], **spec}})


class EvictionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(KEELSON_KUBELET_FLAGS=DISK)
        disk = cls.cluster.state / "nodes/node1/kubelet"
        disk.mkdir(parents=True)
        run(["mount", "-t", "tmpfs", "-o", "size=200m", "keelson-e2e", disk])
        cls.addClassCleanup(run, ["umount", "-R", disk], check=False)
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()

    def ready(self, name):
        self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", f"pod/{name}")

    def evicted(self, name):
        """Waits for the eviction; returns the pod's status."""
        def look():
            status = self.cluster.get("pod", name)["status"]
            return status if status.get("reason") == "Evicted" else None

        status = self.cluster.eventually(f"{name} to be evicted", look, seconds=90)
        self.assertEqual(status["phase"], "Failed")
        return status

    def node(self, kind):
        """Whether the node reports pressure, and whether it is tainted."""
        node = self.cluster.get("node", "node1")
        condition = next(c for c in node["status"]["conditions"] if c["type"].lower() == f"{kind}pressure")
        taints = [taint["key"] for taint in node["spec"].get("taints", [])]
        return condition["status"], condition["reason"], TAINT.format(kind) in taints

    def await_node(self, kind, *state):
        self.cluster.eventually(f"the node's {kind} to be {state}", lambda: self.node(kind) == state, seconds=90)

    def restart_kubelet(self, flags):
        self.cluster.kill("kubelet")
        self.cluster.dev("start", "kubelet", KEELSON_KUBELET_FLAGS=flags)

    def test_disk(self):
        self.cluster.apply(pod("small"))
        self.ready("small")
        self.assertEqual(self.node("disk"), ("False", "KubeletHasNoDiskPressure", False))
        self.cluster.apply(pod("large", "dd if=/dev/zero of=/data/x bs=1M count=170; sleep 100000"))
        status = self.evicted("large")
        self.assertRegex(status["message"], r"^The node was low on resource: ephemeral-storage\. Threshold quantity: 64Mi, available: \d+Ki\. ")
        target = next(c for c in status["conditions"] if c["type"] == "DisruptionTarget")
        self.assertEqual((target["status"], target["reason"]), ("True", "TerminationByKubelet"))
        self.await_node("disk", "True", "KubeletHasDiskPressure", True)
        events = self.cluster.get("events", "--field-selector", "involvedObject.name=node1,reason=EvictionThresholdMet")["items"]
        self.assertIn("Attempting to reclaim ephemeral-storage", [event["message"] for event in events])
        # Evicted pods have no volumes: the node recovers although the Pod object remains.
        self.await_node("disk", "False", "KubeletHasNoDiskPressure", False)
        self.cluster.apply(pod("next"))
        self.ready("next")
        self.assertEqual(self.cluster.get("pod", "small")["status"]["containerStatuses"][0]["restartCount"], 0)
        self.cluster.kubectl("delete", "pod", "small", "large", "next", "--wait=true")

    def test_memory(self):
        self.cluster.apply(pod("hungry"))
        self.ready("hungry")
        self.addCleanup(self.restart_kubelet, DISK)
        self.restart_kubelet(MEMORY)
        message = self.evicted("hungry")["message"]
        self.assertRegex(message, r"^The node was low on resource: memory\. Threshold quantity: \d+(Ki|Mi)?, available: \d+Ki\. "
                                  r"Container main was using \d+Ki, request is 0, has larger consumption of memory\. $")
        self.await_node("memory", "True", "KubeletHasInsufficientMemory", True)
        # BestEffort pods are rejected, even if they tolerate the taint.
        self.cluster.apply(pod("late", nodeName="node1"))
        late = self.cluster.eventually("the refusal", lambda: self.cluster.get("pod", "late")["status"].get("message"))
        self.assertEqual(late, "Pod was rejected: The node had condition: [MemoryPressure]. ")
        self.restart_kubelet(DISK)
        self.await_node("memory", "False", "KubeletHasSufficientMemory", False)
        self.cluster.kubectl("delete", "pod", "hungry", "late", "--wait=true")


if __name__ == "__main__":
    unittest.main()
