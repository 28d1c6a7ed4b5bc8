"""./dev up's default StorageClass: the driver of every node, and what nodectl says of a claim. Without keelson-csi-controller claims
wait for a provisioner; with it they get volumes."""
import os
import pathlib
import unittest

from cluster import ROOT, Cluster, run

BIN = pathlib.Path(os.environ.get("KEELSON_BIN") or ROOT / "build" / os.environ.get("KEELSON_PRESET", "release") / "bin")
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""


class StorageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()

    def why(self, claim):
        kubeconfig = self.cluster.dev("kubeconfig").stdout.strip()
        return run(self.cluster.inside([BIN / "nodectl", "--kubeconfig", kubeconfig, "why", "pvc", claim]), check=False)

    def says(self, claim, reason):
        return self.cluster.eventually(f"nodectl says {reason}", lambda: reason in self.why(claim).stdout, seconds=60)

    def test_every_node_has_the_driver(self):
        self.assertIn("local (default)", self.cluster.kubectl("get", "storageclass").stdout)
        self.cluster.eventually("the driver is registered", lambda: "local.csi.keelson.dev" in self.cluster.kubectl(
            "get", "csinode", "-o", "jsonpath={.items[*].spec.drivers[*].name}").stdout, seconds=60)
        self.assertRegex(self.cluster.dev("status").stdout, r"keelson-csi-local +\d+ +ok")

    def test_a_claim_and_its_pod(self):
        self.addCleanup(self.cluster.kubectl, "delete", "pvc", "data")
        self.cluster.apply(CLAIM)
        self.says("default/data", "WaitForFirstConsumer")
        self.assertEqual(self.why("default/data").returncode, 2)
        self.addCleanup(self.cluster.kubectl, "delete", "pod", "user", "--now")
        self.cluster.apply(POD)
        if not (BIN / "keelson-csi-controller").exists():
            self.says("default/data", "NoProvisioner")
            return
        self.cluster.eventually("the pod runs", lambda: self.cluster.jsonpath(".status.phase", "pod", "user") == "Running", seconds=120)
        self.assertEqual(self.why("default/data").returncode, 0)


if __name__ == "__main__":
    unittest.main()
