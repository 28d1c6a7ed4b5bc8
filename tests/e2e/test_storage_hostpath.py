"""The same claims, pods and snapshots as in test_storage.py with upstream's csi-driver-host-path: no part of ours is made for one driver.

KEELSON_HOSTPATH_PLUGIN names its binary (hostpathplugin, 1.9 or later); KEELSON_HOSTPATH_FLAGS are more flags for it. Each node has one
driver, with a keelson-csi-controller of its own, and a program in place of node-driver-registrar."""
import json
import os
import subprocess
import unittest

import test_storage
from cluster import ROOT

PLUGIN = os.environ.get("KEELSON_HOSTPATH_PLUGIN", "")
REGISTRAR = ROOT / "build" / os.environ.get("KEELSON_PRESET", "release") / "tests/csi_registrar"
DRIVER, TOPOLOGY, CLASS = "hostpath.csi.k8s.io", "topology.hostpath.csi/node", "hostpath"

OBJECTS = [
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER},
     "spec": {"attachRequired": False, "podInfoOnMount": True, "fsGroupPolicy": "File", "storageCapacity": True,
              "volumeLifecycleModes": ["Persistent", "Ephemeral"]}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer",
     "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "allowVolumeExpansion": True},
    {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": CLASS}, "driver": DRIVER,
     "deletionPolicy": "Delete"}]


@unittest.skipUnless(PLUGIN, "KEELSON_HOSTPATH_PLUGIN names no binary of upstream's csi-driver-host-path")
class HostPathTest(test_storage.StorageTest):
    driver, storage_class, snapshot_class = DRIVER, CLASS, CLASS
    full = "exceeds remaining capacity"
    sizes_hold = False  # volumes are directories of the node's file system

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.processes = []
        cls.addClassCleanup(cls.stop)
        cls.cluster.kubectl("annotate", "storageclass", "local", "storageclass.kubernetes.io/is-default-class=false", "--overwrite")
        cls.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
        cls.start()

    @classmethod
    def start(cls):
        for number, node in enumerate(cls.cluster.nodes, 1):
            home = cls.cluster.state / "nodes" / node
            socket = home / "run/hostpath.sock"
            cls.hostpath(node).mkdir(exist_ok=True)
            for name, command in {
                "hostpathplugin": [PLUGIN, f"--drivername={DRIVER}", f"--endpoint=unix://{socket}", f"--nodeid={node}",
                                   f"--statedir={cls.hostpath(node)}", f"--capacity=disk={test_storage.DISK >> 20}Mi",
                                   *os.environ.get("KEELSON_HOSTPATH_FLAGS", "").split()],
                "csi_registrar": [REGISTRAR, DRIVER, socket, home / "kubelet/plugins_registry"],
                "controller": [test_storage.BIN / "keelson-csi-controller", f"--csi-address={socket}", "--node-deployment",
                               f"--node-name={node}", f"--kubeconfig={cls.cluster.state}/conf/keelson-csi-controller.kubeconfig",
                               "--strict-topology", "--immediate-topology=false", "--enable-capacity",
                               "--capacity-namespace=kube-system", "--leader-election-namespace=kube-system",
                               "--controllers=*,-snapshot-controller", "--retry-interval-max=5s"],
            }.items():
                with (home / f"log/hostpath-{name}.log").open("a") as log:
                    cls.processes.append(subprocess.Popen(
                        cls.cluster.inside([ROOT / "dev", "node", "exec", number, *command]), env=cls.cluster.env, stdout=log, stderr=log))

    @classmethod
    def stop(cls):
        for process in cls.processes:
            process.kill()
            process.wait()
        cls.processes.clear()

    def restart_daemons(self):
        self.stop()
        for node in self.cluster.nodes:
            self.cluster.kill("kubelet", node)
        self.cluster.dev("up")
        self.start()

    @classmethod
    def hostpath(cls, node):
        return cls.storage(node) / "hostpath"

    def images(self, kind="volumes"):
        """A directory or a file for each volume, and an archive for each snapshot."""
        found = [file for node in self.cluster.nodes for file in self.hostpath(node).iterdir() if file.name != "state.json"]
        return [file for file in found if (file.suffix == ".snap") == (kind == "snapshots")]

    def test_every_node_has_the_driver_and_its_controller(self):
        for node in self.cluster.nodes:
            self.eventually(f"the driver to be registered on {node}", lambda node=node: DRIVER in self.cluster.jsonpath(
                ".spec.drivers[*].name", "csinode", node))
            self.assertEqual(self.cluster.get("node", node)["metadata"]["labels"].get(TOPOLOGY), node)
            self.eventually(f"the capacity of {node}", lambda node=node: [
                one for one in self.cluster.get("csistoragecapacities", "-n", "kube-system")["items"]
                if one["storageClassName"] == CLASS and node in one["nodeTopology"]["matchLabels"].values()])


if __name__ == "__main__":
    unittest.main()
