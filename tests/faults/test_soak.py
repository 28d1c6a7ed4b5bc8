"""Pods of all sorts come and go, round by round: the kubelet is then what it was after the first few rounds."""
import os
import pathlib
import unittest

import storm_pods
from node import Cluster, Node

ROUNDS, WARM_UP = int(os.environ.get("KEELSON_SOAK_ROUNDS", 30)), 3
# At most, a round of three pods; 30 to 90 were measured. The kubelet remembers some thousand events, so as to tell each only once.
GROWTH_KIB = 150


def web(name, starts):
    """Asked by sockets whether it lives and is ready."""
    main = storm_pods.container(name, "main", "mkdir /www; echo hello > /www/word; exec httpd -f -p 8080 -h /www",
                                readinessProbe={"httpGet": {"path": "/word", "port": 8080}, "periodSeconds": 1},
                                livenessProbe={"tcpSocket": {"port": 8080}, "periodSeconds": 1},
                                lifecycle={"preStop": {"httpGet": {"path": "/word", "port": 8080}}})
    return storm_pods.pod(name, "web", starts, "Always", [main])


class SoakTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cls.node = Node(cls.cluster)
        cls.starts = cls.node.dir / "starts"
        cls.starts.mkdir()
        cls.process = pathlib.Path("/proc", str(cls.cluster.pid("kubelet")))

    def round(self, i):
        server, job, page = (f"{kind}-{i}" for kind in ("server", "once", "web"))
        self.cluster.apply(storm_pods.manifest(storm_pods.server(server, self.starts), storm_pods.once(job, self.starts), web(page, self.starts)))
        self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", f"pod/{server}", f"pod/{page}")
        said = self.cluster.kubectl("exec", server, "--", "sh", "-c", "cat /config/word; echo logged > /proc/1/fd/1").stdout
        self.assertEqual(said, "hello\n")
        self.assertEqual(self.cluster.kubectl("logs", server).stdout, "logged\n")
        self.cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", f"pod/{job}")
        self.cluster.kubectl("delete", "pods", "--wait=false", server, job, page)

    def traces(self):
        return {"mounts": self.node.mounts(), "cgroups": self.node.cgroups(), "directories": set(self.node.pods.iterdir())}

    def held(self):
        """How many: some go when they have not been used for a while."""
        return {"fds": len(list((self.process / "fd").iterdir())), "threads": len(list((self.process / "task").iterdir()))}

    def memory(self):
        """In KiB."""
        fields = dict(line.split(":", 1) for line in (self.process / "smaps_rollup").read_text().splitlines()[1:])
        kib = {name: int(value.split()[0]) for name, value in fields.items()}
        return {"RSS": kib["Rss"], "USS": kib["Private_Clean"] + kib["Private_Dirty"]}

    def rounds(self, which):
        """Returns the memory after the last one, when all pods are gone."""
        for i in which:
            try:
                self.round(i)
            except AssertionError as error:
                raise AssertionError(f"{error}{self.node.tell_of([f'{kind}-{i}' for kind in ('server', 'once', 'web')])}") from None
        self.cluster.eventually("all pods to be gone", lambda: not self.cluster.get("pods")["items"])
        self.cluster.eventually("all that they had to be gone", lambda: not self.node.cgroups() and not list(self.node.pods.iterdir()))
        return self.traces(), self.held(), self.memory()

    def test_soak(self):
        self.cluster.apply(storm_pods.manifest(storm_pods.CONFIG))
        traces, held, early = self.rounds(range(WARM_UP))
        traces_now, held_now, late = self.rounds(range(WARM_UP, ROUNDS))
        print(f"after {WARM_UP} rounds: {held}, KiB {early}; after {ROUNDS}: {held_now}, KiB {late}", flush=True)
        self.assertEqual(traces_now, traces)
        self.cluster.eventually(f"no more than {held}", lambda: all(now <= held[kind] for kind, now in self.held().items()), seconds=20)
        for kind, size in late.items():
            self.assertLess(size - early[kind], GROWTH_KIB * (ROUNDS - WARM_UP), kind)


if __name__ == "__main__":
    unittest.main()
