"""Jobs, CronJobs, StatefulSets, their volumes, and load balancers on a real cluster."""
import unittest

from cluster import NODE_IP, Cluster, run

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

# Pre-provisioned volumes, for claims of a class without a provisioner.
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {{name: disk-{number}}}
spec:
  capacity: {{storage: {size}}}
  accessModes: [ReadWriteOnce]
  storageClassName: {classed}
  persistentVolumeReclaimPolicy: {policy}
  {source}
"""

KEEPERS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: shelf}
provisioner: kubernetes.io/no-provisioner
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: keeper}
spec:
  replicas: 2
  serviceName: keepers
  selector: {matchLabels: {app: keeper}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: shelf, resources: {requests: {storage: 1Gi}}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
""" + POD + """
        command: [sh, -c, 'echo $HOSTNAME >> /data/log; exec sleep 1000']
        volumeMounts: [{name: data, mountPath: /data}]
"""

SCRATCH = """
apiVersion: v1
kind: Pod
metadata: {name: scratch}
spec:
""" + POD.replace("\n    ", "\n") + """
    command: [sleep, "1000"]
    volumeMounts: [{name: space, mountPath: /space}]
  volumes:
  - name: space
    ephemeral:
      volumeClaimTemplate:
        spec: {accessModes: [ReadWriteOnce], storageClassName: late, resources: {requests: {storage: 3Gi}}}
"""

BALANCED = """
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {type: LoadBalancer, selector: {app: peer}, ports: [{port: 8088, targetPort: 8080}]}
"""


class WorkloadsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        for manifest in (JOB, CRON, SET):  # all run while each is checked
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

    def make_volumes(self):
        """Two hostPath volumes, a local volume of one node, and a larger one for the scheduler to choose."""
        sources = []
        for number in range(4):
            path = self.cluster.dir / f"disk-{number}"
            path.mkdir()
            sources.append(f"hostPath: {{path: {path}}}")
        sources[1] = (f"local: {{path: {self.cluster.dir}/disk-1}}\n  nodeAffinity: {{required: {{nodeSelectorTerms: "
                      "[{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node1]}]}]}}")
        sizes, policies = ("1Gi", "1Gi", "2Gi", "5Gi"), ("Retain", "Delete", "Retain", "Retain")
        classes = ("shelf", "shelf", "shelf", "late")
        self.cluster.apply("---".join(VOLUME.format(number=n, size=sizes[n], policy=policies[n], source=sources[n], classed=classes[n])
                                      for n in range(4)))

    def test_claims_and_volumes(self):
        volumes = lambda: {v["metadata"]["name"]: v for v in self.cluster.get("pv")["items"]}
        self.cluster.apply(KEEPERS + "---" + SCRATCH)
        self.make_volumes()  # after the claims, which must be found again
        self.cluster.kubectl("rollout", "status", "statefulset/keeper", "--timeout=60s", timeout=70)
        self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/scratch", timeout=70)
        claims = {c["metadata"]["name"]: c for c in self.cluster.get("pvc")["items"]}
        self.assertEqual({name: c["status"]["phase"] for name, c in claims.items()},
                         {"data-keeper-0": "Bound", "data-keeper-1": "Bound", "scratch-space": "Bound"})
        self.assertEqual({claims[f"data-keeper-{n}"]["spec"]["volumeName"] for n in (0, 1)}, {"disk-0", "disk-1"})
        self.assertEqual(claims["scratch-space"]["spec"]["volumeName"], "disk-3")
        self.assertEqual(claims["scratch-space"]["status"]["capacity"], {"storage": "5Gi"})
        self.assertEqual(volumes()["disk-2"]["status"]["phase"], "Available")

        # A replica's successor finds its data.
        self.cluster.kubectl("delete", "pod", "keeper-0", "--grace-period=1")
        self.cluster.kubectl("rollout", "status", "statefulset/keeper", "--timeout=60s", timeout=70)
        self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/keeper-0", timeout=70)
        self.assertEqual(self.cluster.kubectl("exec", "keeper-0", "--", "cat", "/data/log").stdout, "keeper-0\n" * 2)

        self.cluster.kubectl("delete", "statefulset/keeper", "pod/scratch")
        want = {"disk-0": "Released", "disk-1": "Failed", "disk-2": "Available", "disk-3": "Released"}
        self.cluster.eventually("claims to go with their owners and volumes to be reclaimed",
                                lambda: {name: v["status"]["phase"] for name, v in volumes().items()} == want)
        self.assertEqual(self.cluster.get("pvc")["items"], [])
        self.assertIn("no deletable volume plugin matched", volumes()["disk-1"]["status"]["message"])

    def test_a_load_balancer(self):
        self.cluster.apply(BALANCED)
        ingress = lambda: self.cluster.get("service", "front")["status"]["loadBalancer"].get("ingress")
        self.cluster.eventually("the node's address", ingress)
        self.assertEqual(ingress(), [{"ip": NODE_IP, "ipMode": "VIP"}])
        fetch = self.cluster.inside(["curl", "-fsS", "-m", "5", f"http://{NODE_IP}:8088/"])
        self.cluster.eventually("an answer at the node's address",
                                lambda: run(fetch, check=False).stdout.startswith("peer-"))
        self.cluster.kubectl("label", "node", "node1", "node.kubernetes.io/exclude-from-external-load-balancers=")
        self.cluster.eventually("the node to be left out", lambda: not ingress())
        self.cluster.kubectl("delete", "service", "front")


if __name__ == "__main__":
    unittest.main()
