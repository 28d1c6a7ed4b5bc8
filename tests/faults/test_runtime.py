"""containerd killed, hung and restarted, and the API server stopped, while pods run and die."""
import contextlib
import os
import pathlib
import signal
import time
import unittest

from node import Cluster, Node, kill

PODS = "\n---\n".join(f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sh, -c, "trap 'exit 0' TERM; sleep 100000 & wait"]
    livenessProbe: {{exec: {{command: ["true"]}}, periodSeconds: 1}}
""" for name in ("steady", "dying"))

FRESH = PODS.split("---")[0]


class RuntimeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cls.node = Node(cls.cluster)

    def setUp(self):
        self.cluster.apply(PODS)
        self.addCleanup(self.cluster.kubectl, "delete", "pods", "--all", "--wait=true")
        self.ready("steady", "dying")
        self.processes = [pid for pid in self.cluster.pod_processes("dying")
                          if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sh\0")]

    def ready(self, *names):
        self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", *(f"pod/{name}" for name in names))

    def container(self, name):
        status = self.cluster.get("pod", name)["status"]["containerStatuses"][0]
        return status["containerID"], status["restartCount"], status["ready"]

    def end(self):
        """Kills the container of `dying` without any daemon of the node."""
        for pid in self.processes:
            os.kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def logged(self, message, seconds=180):
        """Waits until the kubelet has logged `message` since the block began."""
        log = self.node.dir / "log/kubelet.log"
        begin = log.stat().st_size
        yield
        self.cluster.eventually(f"the kubelet to log {message!r}", lambda: message.encode() in log.read_bytes()[begin:], seconds)

    def restarted(self, name):
        return self.cluster.eventually(f"{name} to be restarted once", lambda: self.container(name)[1:] == (1, True))

    def check_all(self, steady):
        """Checks that running containers continue, ended ones are restarted, new pods start, and pods end."""
        self.restarted("dying")
        self.assertEqual(self.container("steady"), steady)
        self.cluster.apply(FRESH.replace("steady", "fresh"))
        self.ready("fresh")
        self.cluster.kubectl("delete", "pod", "fresh", "--wait=true", timeout=30)
        self.assertEqual(self.container("steady"), steady)

    def test_containerd_is_killed_and_comes_back(self):
        steady = self.container("steady")
        self.cluster.kill("containerd")
        with self.logged("Container runtime does not answer"):  # relists fail
            self.end()
        self.cluster.dev("start", "containerd")
        self.check_all(steady)

    def test_containerd_hangs(self):
        steady, pid = self.container("steady"), self.cluster.pid("containerd")
        os.kill(pid, signal.SIGSTOP)
        try:
            self.end()
            self.cluster.apply(FRESH.replace("steady", "waiting"))
            time.sleep(12)  # how long the runtime hangs: calls with their default deadline do not fail yet
        finally:
            os.kill(pid, signal.SIGCONT)
        self.ready("waiting")
        self.check_all(steady)

    def test_both_are_killed(self):
        steady = self.container("steady")
        self.cluster.kill("containerd")
        kill(self.cluster.pid("kubelet"))
        self.end()
        with self.logged("Waiting for the container runtime"):
            self.node.start("kubelet")
        self.cluster.dev("start", "containerd")
        self.node.await_starters()
        self.check_all(steady)

    def test_api_server_is_away(self):
        steady = self.container("steady")
        self.cluster.dev("stop", "kube-controlplane")
        self.addCleanup(self.cluster.dev, "start", "kube-controlplane")
        self.end()
        dead = set(self.node.ctr("tasks", "ls", "-q"))
        self.cluster.eventually("the container to be started again without an API server",
                                lambda: set(self.node.ctr("tasks", "ls", "-q")) - dead)
        self.cluster.dev("start", "kube-controlplane")
        self.check_all(steady)


if __name__ == "__main__":
    unittest.main()
