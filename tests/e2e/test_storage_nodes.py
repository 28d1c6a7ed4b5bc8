"""Volumes outlive a node that loses its power: file systems and devices come back with what was written out."""
import json
import pathlib
import unittest

import test_storage
from cluster import Cluster, run

NODE = "node2"
WORD = "a word"
READ = {"db-0": "cat /data/word", "raw": "dd if=/dev/data bs=512 count=1 2>/dev/null | tr -d '\\0'"}


class NodePowerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=2)
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()

    def eventually(self, what, condition):
        return self.cluster.eventually(what, condition, seconds=test_storage.LIMIT)

    def shell(self, name, command):
        return self.cluster.kubectl("exec", name, "--", "sh", "-c", command).stdout.strip()

    def runs(self, name, restarts):
        status = self.cluster.get("pod", name)["status"]["containerStatuses"][0]
        return status["ready"] and status["restartCount"] >= restarts

    def images(self):
        return sorted((self.cluster.state / "nodes" / NODE / "storage/volumes").glob("*.img"))

    def loops(self):
        """Files of the node's volumes that have a loop device, once for each."""
        found = run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"]).stdout.split()
        return sorted(pathlib.Path(file) for file in found if file.startswith(f"{self.cluster.state}/nodes/{NODE}/"))

    def test_volumes_outlive_a_power_failure(self):
        db = test_storage.stateful_set("db", 1)
        db["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": NODE}
        raw = test_storage.pod("raw", use="volumeDevices", node=NODE)
        for one in (test_storage.claim("raw", volumeMode="Block"), raw, db):
            self.cluster.apply(json.dumps(one))
        for name in READ:
            self.eventually(f"{name} to run", lambda name=name: self.runs(name, 0))
        self.shell("db-0", f"echo '{WORD}' > /data/word && sync")
        self.shell("raw", f"printf '{WORD}' | dd of=/dev/data bs=512 conv=sync,fsync")
        self.assertEqual(self.loops(), self.images())

        self.cluster.dev("node", "stop", NODE)
        self.cluster.dev("node", "start", NODE)
        for name, read in READ.items():
            self.eventually(f"{name} to run again", lambda name=name: self.runs(name, 1))
            self.assertEqual(self.shell(name, read), WORD)
        self.assertEqual(self.loops(), self.images(), "one device a volume, none from before")

        self.cluster.kubectl("delete", "statefulset/db", "pod/raw", "pvc/raw", timeout=test_storage.LIMIT)
        self.eventually("all volumes to be deleted", lambda: not self.images() and not self.cluster.get("pv")["items"])
        self.assertEqual(self.loops(), [])


if __name__ == "__main__":
    unittest.main()
