"""Claims on two nodes: the driver and the controller of each node make, expand, copy and delete volumes, and pods keep their data."""
import json
import os
import pathlib
import unittest

from cluster import ROOT, Cluster, run

BIN = pathlib.Path(os.environ.get("KEELSON_BIN") or ROOT / "build" / os.environ.get("KEELSON_PRESET", "release") / "bin")
DRIVER = "local.csi.keelson.dev"
LIMIT = 180  # seconds; whatever is waited for comes far sooner on an idle machine
DISK = 1 << 30  # of each node
SIZE = "df -k /data | awk 'END {print $2}'"  # KiB


def claim_spec(size, **more):
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}


def claim(name, size="64Mi", **more):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": claim_spec(size, **more)}


def pod_spec(volume, use="volumeMounts", node=None):
    place = {"mountPath": "/data"} if use == "volumeMounts" else {"devicePath": "/dev/data"}
    return {"terminationGracePeriodSeconds": 0, "volumes": [{"name": "data", **volume}],
            **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
            "containers": [{"name": "main", "image": "localhost/busybox:1", "command": ["sleep", "100000"], use: [{"name": "data", **place}]}]}


def pod(name, volume=None, **more):
    volume = volume or {"persistentVolumeClaim": {"claimName": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod_spec(volume, **more)}


def stateful_set(name, replicas):
    labels = {"app": name}
    spec = pod_spec({})
    del spec["volumes"]
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
            "spec": {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": labels}, "podManagementPolicy": "Parallel",
                     "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
                     "template": {"metadata": {"labels": labels}, "spec": spec},
                     "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec("64Mi")}]}}


class StorageTest(unittest.TestCase):
    driver, storage_class, snapshot_class = DRIVER, "local", "local"
    full = "not enough space"  # part of what the driver says when a disk is full
    sizes_hold = True  # a pod sees the size of its volume

    @classmethod
    def setUpClass(cls):
        # Nothing is promised twice, so a disk is full when its size has been given away.
        # A kubelet looks at the size of a claim when it syncs the pod.
        cls.cluster = Cluster(nodes=2, KEELSON_STORAGE_FLAGS="--overprovision-ratio=1", KEELSON_KUBELET_FLAGS="--sync-frequency=2s",
                              KEELSON_STORAGE_CONTROLLER_FLAGS="--retry-interval-max=5s")
        cls.addClassCleanup(cls.cluster.down)
        for node in cls.cluster.nodes:
            cls.storage(node).mkdir(parents=True)
            run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "disk", cls.storage(node)])
        cls.cluster.up()

    @classmethod
    def storage(cls, node):
        """The node's disk, which ./dev down takes away."""
        return cls.cluster.state / "nodes" / node / "storage"

    def setUp(self):
        """After each test no volume is left: neither its object nor its file."""
        self.addCleanup(self.eventually, "all volumes to be deleted", lambda: not self.cluster.get("pv")["items"] and not self.images())

    # ---- objects ----
    def apply(self, *objects):
        """Makes objects that are deleted when the test ends, the last one first."""
        for one in objects:
            self.addCleanup(self.delete, one["kind"], one["metadata"]["name"])
            self.cluster.apply(json.dumps(one))

    def delete(self, kind, name):
        self.cluster.kubectl("delete", kind, name, "--ignore-not-found", f"--timeout={LIMIT}s", timeout=LIMIT + 20)

    def eventually(self, what, condition):
        return self.cluster.eventually(what, condition, seconds=LIMIT)

    def await_running(self, *pods):
        for name in pods:
            self.eventually(f"{name} to run", lambda: self.ready(name))

    def ready(self, name):
        self.assertEqual(self.cluster.jsonpath(".status.containerStatuses[0].ready", "pod", name), "true", self.cluster.kubectl(
            "get", "events", "--sort-by=.lastTimestamp").stdout[-2000:])
        return True

    def shell(self, name, command):
        return self.cluster.kubectl("exec", name, "--", "sh", "-c", command).stdout

    def renew(self, name, **more):
        """Deletes the pod and makes it again."""
        self.delete("pod", name)
        self.cluster.apply(json.dumps(pod(name, **more)))
        self.await_running(name)

    def node_of(self, name):
        return self.cluster.jsonpath(".spec.nodeName", "pod", name)

    def phase(self, name):
        return self.cluster.jsonpath(".status.phase", "pvc", name)

    def images(self, kind="volumes"):
        return [file for node in self.cluster.nodes for file in (self.storage(node) / kind).iterdir()]

    def why(self, name):
        kubeconfig = self.cluster.dev("kubeconfig").stdout.strip()
        return run(self.cluster.inside([BIN / "nodectl", "--kubeconfig", kubeconfig, "why", "pvc", f"default/{name}"]), check=False)

    def says(self, name, reason):
        self.eventually(f"nodectl to say {reason}", lambda: self.assertIn(reason, self.why(name).stdout) or True)
        self.assertEqual(self.why(name).returncode, 2)

    def restart_daemons(self):
        """Kills the kubelets and all that is of the driver, and starts them again."""
        for node in self.cluster.nodes:
            for daemon in ("kubelet", "keelson-csi-local", "keelson-csi-controller"):
                self.cluster.kill(daemon, node)
        self.cluster.dev("up")

    # ---- tests ----
    def test_every_node_has_the_driver_and_its_controller(self):
        self.assertIn(f"{self.storage_class} (default)", self.cluster.kubectl("get", "storageclass").stdout)
        for node in self.cluster.nodes:
            self.eventually(f"the driver to be registered on {node}", lambda: self.driver in self.cluster.jsonpath(
                ".spec.drivers[*].name", "csinode", node))
            self.eventually(f"the capacity of {node}", lambda: [
                one for one in self.cluster.get("csistoragecapacities", "-n", "kube-system")["items"]
                if one["storageClassName"] == self.storage_class and node in one["nodeTopology"]["matchLabels"].values()])
            for daemon in ("keelson-csi-local", "keelson-csi-controller"):
                self.assertRegex(self.cluster.dev("status").stdout, rf"{node} +{daemon} +\d+ +ok")

    def test_a_claim_waits_for_its_pod(self):
        self.apply(claim("late"))
        self.says("late", "WaitForFirstConsumer")
        self.apply(pod("late"))
        self.await_running("late")
        self.assertEqual(self.why("late").returncode, 0)

    def test_a_stateful_set_keeps_its_data(self):
        pods = ["db-0", "db-1"]
        self.apply(stateful_set("db", len(pods)))
        self.await_running(*pods)
        for name in pods:
            self.shell(name, "hostname > /data/name && sync")
        where = {name: self.node_of(name) for name in pods}

        def kept():
            self.assertEqual({name: self.shell(name, "cat /data/name").strip() for name in pods}, {name: name for name in pods})
            self.assertEqual({name: self.node_of(name) for name in pods}, where)

        def uids():
            return {name: self.cluster.jsonpath(".metadata.uid", "pod", name) for name in pods}

        def renew_all():
            before = uids()
            self.cluster.kubectl("delete", "pod", *pods, timeout=LIMIT)
            self.eventually("new pods", lambda: not set(before.values()) & set(uids().values()))
            self.await_running(*pods)
            kept()

        renew_all()
        before = uids()
        self.restart_daemons()
        kept()
        self.assertEqual(uids(), before)
        renew_all()

    def test_a_claim_expands_under_its_pod(self):
        # ext4 grows below its mount only for a process with CAP_SYS_RESOURCE, which a container has not.
        self.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "xfs"}, "provisioner": self.driver,
                    "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": True,
                    "parameters": {"csi.storage.k8s.io/fstype": "xfs"}})
        self.apply(claim("growing", "300Mi", storageClassName="xfs"), pod("growing"))
        self.await_running("growing")
        before = int(self.shell("growing", SIZE))
        self.shell("growing", "echo early > /data/word")
        self.cluster.kubectl("patch", "pvc", "growing", "-p", '{"spec": {"resources": {"requests": {"storage": "400Mi"}}}}')
        self.eventually("the claim to have its new size", lambda: self.assertEqual(
            self.cluster.jsonpath(".status.capacity.storage", "pvc", "growing"), "400Mi") or True)
        if self.sizes_hold:
            self.assertGreater(int(self.shell("growing", SIZE)), before + 90 * 1024)
        self.assertEqual(self.shell("growing", "cat /data/word"), "early\n")
        self.assertEqual(self.cluster.jsonpath(".status.containerStatuses[0].restartCount", "pod", "growing"), "0")

    def test_a_clone_stands_on_its_own(self):
        self.apply(claim("source"), pod("source"))
        self.await_running("source")
        self.shell("source", "echo first > /data/word && sync")
        self.apply(claim("copy", dataSource={"kind": "PersistentVolumeClaim", "name": "source"}), pod("copy"))
        self.await_running("copy")
        # A volume is copied where it is. The scheduler does not know; the provisioner moves it there.
        self.assertEqual(self.node_of("copy"), self.node_of("source"))
        self.shell("source", "echo second > /data/word")
        self.assertEqual(self.shell("copy", "cat /data/word"), "first\n")
        self.delete("pod", "source")
        self.delete("pvc", "source")
        self.renew("copy")
        self.assertEqual(self.shell("copy", "cat /data/word"), "first\n")

    def test_a_snapshot_is_restored(self):
        self.apply(claim("origin"), pod("origin"))
        self.await_running("origin")
        self.shell("origin", "echo first > /data/word && sync")
        # The class is the driver's default.
        self.cluster.kubectl("annotate", "volumesnapshotclass", self.snapshot_class, "snapshot.storage.kubernetes.io/is-default-class=true", "--overwrite")
        self.apply({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "monday"},
                    "spec": {"source": {"persistentVolumeClaimName": "origin"}}})
        self.eventually("the snapshot to be ready", lambda: self.cluster.jsonpath(".status.readyToUse", "volumesnapshot", "monday") == "true")
        self.shell("origin", "echo second > /data/word && sync")
        self.apply(claim("restored", dataSource={"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "monday"}),
                   pod("restored"))
        self.await_running("restored")
        self.assertEqual(self.shell("restored", "cat /data/word"), "first\n")
        self.assertEqual(self.node_of("restored"), self.node_of("origin"))
        self.delete("volumesnapshot", "monday")
        self.assertEqual(self.images("snapshots"), [])
        self.assertEqual(self.cluster.get("volumesnapshotcontents")["items"], [])

    def test_a_raw_block_volume(self):
        self.apply(claim("raw", volumeMode="Block"), pod("raw", use="volumeDevices"))
        self.await_running("raw")
        self.shell("raw", "[ -b /dev/data ] && printf 'a word' | dd of=/dev/data bs=512 seek=100 conv=sync,fsync")
        self.renew("raw", use="volumeDevices")
        self.assertEqual(self.shell("raw", "dd if=/dev/data bs=512 skip=100 count=1").rstrip("\0"), "a word")

    def test_a_generic_ephemeral_volume_goes_with_its_pod(self):
        self.apply(pod("brief", volume={"ephemeral": {"volumeClaimTemplate": {"spec": claim_spec("64Mi")}}}))
        self.await_running("brief")
        self.assertEqual(self.shell("brief", "echo word > /data/file && cat /data/file"), "word\n")
        self.assertEqual(self.phase("brief-data"), "Bound")
        self.delete("pod", "brief")
        self.eventually("the claim to be gone", lambda: not self.cluster.get("pvc")["items"])

    def test_an_inline_volume_goes_with_its_pod(self):
        self.apply(pod("inline", volume={"csi": {"driver": self.driver, "volumeAttributes": {"size": "32Mi"}}}))
        self.await_running("inline")
        self.assertEqual(self.shell("inline", "echo word > /data/file && cat /data/file"), "word\n")
        if self.sizes_hold:
            self.assertLess(int(self.shell("inline", SIZE)), 32 * 1024)
        self.assertNotEqual(self.images(), [])
        self.assertEqual(self.cluster.get("pvc")["items"] + self.cluster.get("pv")["items"], [])
        self.delete("pod", "inline")
        self.eventually("its content to be gone", lambda: not self.images())
        if not self.sizes_hold:
            return
        # A pod gets an error for what has no room.
        self.apply(pod("large", volume={"csi": {"driver": self.driver, "volumeAttributes": {"size": "1Ti"}}}))
        self.eventually("an event of the pod", lambda: self.full in self.cluster.jsonpath(
            ".items[*].message", "events", "--field-selector", "involvedObject.name=large,reason=FailedMount"))

    def test_full_disks_are_told_and_freed(self):
        large = f"{DISK * 3 // 4 >> 20}Mi"
        for node in self.cluster.nodes:
            self.apply(claim(f"on-{node}", large), pod(f"on-{node}", node=node))
        self.await_running(*(f"on-{node}" for node in self.cluster.nodes))
        # Without capacities the scheduler chooses a full node, and the driver refuses.
        self.schedule_by_capacity(False)
        self.addCleanup(self.schedule_by_capacity, True)
        self.apply(claim("third", large), pod("third"))
        self.eventually("an event of the claim", lambda: self.full in self.cluster.jsonpath(
            ".items[*].message", "events", "--field-selector", "involvedObject.kind=PersistentVolumeClaim,reason=ProvisioningFailed"))
        self.schedule_by_capacity(True)
        self.says("third", "NoCapacity")
        self.assertEqual(self.phase("third"), "Pending")
        self.delete("pod", "on-node2")
        self.delete("pvc", "on-node2")
        self.await_running("third")
        self.assertEqual(self.node_of("third"), "node2")

    def schedule_by_capacity(self, on):
        self.cluster.kubectl("patch", "csidriver", self.driver, "-p", json.dumps({"spec": {"storageCapacity": on}}))


if __name__ == "__main__":
    unittest.main()
