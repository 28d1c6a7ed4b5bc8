"""Jobs, CronJobs and StatefulSets on a real cluster."""
import unittest

from cluster import Cluster

POD = """
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: localhost/busybox:1
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: count}
spec:
  completions: 3
  parallelism: 2
  completionMode: Indexed
  backoffLimitPerIndex: 0
  template:
    spec:
      restartPolicy: Never
""" + POD + """
        command: [sh, -c, 'echo "$JOB_COMPLETION_INDEX on $(hostname)"; [ $JOB_COMPLETION_INDEX != 1 ]']
"""

CRON = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "@every 3s"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - {name: main, image: "localhost/busybox:1", command: ["true"]}
"""

SET = """
apiVersion: v1
kind: Service
metadata: {name: peers}
spec: {clusterIP: None, selector: {app: peer}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: peer}
spec:
  replicas: 2
  serviceName: peers
  selector: {matchLabels: {app: peer}}
  template:
    metadata: {labels: {app: peer}}
    spec:
""" + POD + """
        command: [sh, -c, 'mkdir /www && hostname > /www/index.html && exec httpd -f -p 8080 -h /www']
        readinessProbe: {httpGet: {port: 8080, path: /index.html}, periodSeconds: 1}
"""


class WorkloadsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        for manifest in (JOB, CRON, SET):  # they work side by side while each is looked at
            cls.cluster.apply(manifest)

    def test_an_indexed_job(self):
        self.cluster.kubectl("wait", "--for=condition=Failed", "--timeout=60s", "job/count", timeout=70)
        status = self.cluster.get("job", "count")["status"]
        self.assertEqual((status["succeeded"], status["failed"]), (2, 1))
        self.assertEqual((status["completedIndexes"], status["failedIndexes"]), ("0,2", "1"))
        self.assertEqual(status["uncountedTerminatedPods"], {})
        for index in range(3):
            log = self.cluster.kubectl("logs", "-l", f"batch.kubernetes.io/job-completion-index={index}").stdout
            self.assertEqual(log, f"{index} on count-{index}\n")
        self.cluster.kubectl("delete", "job", "count")
        self.cluster.eventually("the pods to go with their Job",
                                lambda: not self.cluster.get("pods", "-l", "batch.kubernetes.io/job-name=count")["items"])

    def test_a_cron_job(self):
        self.cluster.eventually("a run that succeeded",
                                lambda: self.cluster.get("cronjob", "tick")["status"].get("lastSuccessfulTime"))
        self.cluster.kubectl("delete", "cronjob", "tick")
        self.cluster.eventually("its Jobs to go",
                                lambda: "tick-" not in self.cluster.kubectl("get", "jobs", "-o", "name").stdout)

    def test_a_stateful_set(self):
        pods = lambda: {pod["metadata"]["name"]: pod for pod in self.cluster.get("pods", "-l", "app=peer")["items"]}
        self.cluster.kubectl("rollout", "status", "statefulset/peer", "--timeout=60s", timeout=70)
        before = pods()
        self.assertEqual(sorted(before), ["peer-0", "peer-1"])
        answer = self.cluster.kubectl("exec", "peer-0", "--", "wget", "-qO-", "http://peer-1.peers:8080/").stdout
        self.assertEqual(answer, "peer-1\n")

        self.cluster.kubectl("set", "env", "statefulset/peer", "ROUND=2")
        self.cluster.kubectl("rollout", "status", "statefulset/peer", "--timeout=60s", timeout=70)
        after = pods()
        for name in before:
            self.assertNotEqual(before[name]["metadata"]["uid"], after[name]["metadata"]["uid"])
        self.cluster.kubectl("rollout", "undo", "statefulset/peer")
        self.cluster.kubectl("rollout", "status", "statefulset/peer", "--timeout=60s", timeout=70)
        self.assertNotIn("env", pods()["peer-0"]["spec"]["containers"][0])
        self.assertEqual(self.cluster.get("statefulset", "peer")["status"]["currentRevision"],
                         pods()["peer-1"]["metadata"]["labels"]["controller-revision-hash"])
        self.cluster.kubectl("scale", "statefulset/peer", "--replicas=1")
        self.cluster.eventually("the highest to go", lambda: sorted(pods()) == ["peer-0"])


if __name__ == "__main__":
    unittest.main()
