"""Resource usage in kubectl top, and an autoscaler that follows it, on a real cluster."""
import re
import unittest

from cluster import Cluster

# Uses its CPU limit until a file exists.
BURN = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: burn}
spec:
  selector: {matchLabels: {app: burn}}
  template:
    metadata: {labels: {app: burn}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: localhost/busybox:1
        command: [sh, -c, 'while [ ! -e /idle ]; do :; done; exec sleep 1000000']
        resources: {requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 100m, memory: 16Mi}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: burn}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: burn}
  maxReplicas: 2
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
"""

# Short periods without stabilization.
FLAGS = ("--metric-resolution 1s --horizontal-pod-autoscaler-sync-period 1s "
         "--horizontal-pod-autoscaler-cpu-initialization-period 0s "
         "--horizontal-pod-autoscaler-downscale-stabilization 3s")


class AutoscaleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(KEELSON_API_FLAGS=FLAGS)
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()

    def condition(self, kind):
        conditions = self.cluster.get("hpa", "burn")["status"]["conditions"]
        return next(one for one in conditions if one["type"] == kind)

    def test_a_deployment_follows_its_load(self):
        self.cluster.apply(BURN)
        self.cluster.eventually("two replicas that work",
                                lambda: self.cluster.get("deployment", "burn")["status"].get("readyReplicas") == 2)
        self.assertEqual(self.condition("ScalingActive")["reason"], "ValidMetricFound")
        self.cluster.eventually("more are wanted than may be",
                                lambda: self.condition("ScalingLimited")["reason"] == "TooManyReplicas")
        self.assertRegex(self.cluster.kubectl("get", "hpa", "burn").stdout, r"cpu: \d+%/50%")

        def top():
            return self.cluster.kubectl("top", "pod", "--containers", "--no-headers", "-l", "app=burn").stdout.splitlines()
        lines = self.cluster.eventually("both are measured", lambda: top() if len(top()) == 2 else None)
        for line in lines:
            used = re.fullmatch(r"burn-\S+ +main +(\d+)m +(\d+)Mi *", line)
            self.assertTrue(used and 50 < int(used[1]) < 150 and int(used[2]) < 17, line)
        self.assertRegex(self.cluster.kubectl("top", "node", "--no-headers").stdout, r"^node1 +\d+m +\d+% +\d+Mi +\d+% *$")

        for pod in self.cluster.get("pod", "-l", "app=burn")["items"]:
            self.cluster.kubectl("exec", pod["metadata"]["name"], "--", "touch", "/idle")
        self.cluster.eventually("one that idles",
                                lambda: self.cluster.get("deployment", "burn")["status"].get("replicas") == 1)
        events = self.cluster.get("events", "--field-selector", "involvedObject.name=burn,reason=SuccessfulRescale")["items"]
        self.assertEqual({event["message"] for event in events},
                         {"New size: 2; reason: cpu resource utilization (percentage of request) above target",
                          "New size: 1; reason: All metrics below target"})


if __name__ == "__main__":
    unittest.main()
