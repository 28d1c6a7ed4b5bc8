"""The kubelet's pod features on a real runtime and kernel: one cluster, and a pod per feature."""
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from cluster import NODE_IP, Cluster, run

IMAGE = "localhost/busybox:1"
WAIT = "trap 'echo end-{name} >> /log/order; exit 0' TERM; echo start-{name} >> /log/order; sleep 100000 & wait"


def container(name, script=WAIT, **more):
    return {"name": name, "image": IMAGE, "command": ["sh", "-c", script.replace("{name}", name)],
            "volumeMounts": [{"name": "log", "mountPath": "/log"}], **more}


class PodsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="keelson-pods-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        (cls.dir / "manifests").mkdir()
        cls.dir.chmod(0o755)
        cls.cluster = Cluster(KEELSON_KUBELET_FLAGS=f"--pod-manifest-path {cls.dir}/manifests "
                              "--cpu-manager-policy static --kube-reserved cpu=500m")
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()

    def setUp(self):
        self.name = self._testMethodName.removeprefix("test_").replace("_", "-")
        self.log = self.dir / self.name
        self.log.mkdir()

    def manifest(self, containers, init=(), **spec):
        """A pod with the test's name, whose containers write to self.log."""
        return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.name}, "spec": {
            "terminationGracePeriodSeconds": 5, "initContainers": list(init), "containers": list(containers),
            "volumes": [{"name": "log", "hostPath": {"path": str(self.log)}}, *spec.pop("volumes", [])], **spec}})

    def create(self, containers, init=(), **spec):
        self.cluster.apply(self.manifest(containers, init, **spec))
        self.addCleanup(self.cluster.kubectl, "delete", "pod", self.name, "--wait=false", "--ignore-not-found", "--grace-period=1")

    def ready(self, name=None):
        self.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", f"pod/{name or self.name}")

    def delete(self):
        self.cluster.kubectl("delete", "pod", self.name, "--wait=true", timeout=60)

    def status(self, kind="containerStatuses"):
        return self.cluster.get("pod", self.name)["status"].get(kind, [{}])[0]

    def order(self):
        return (self.log / "order").read_text().split()

    def exec(self, script, container="main"):
        return self.cluster.kubectl("exec", self.name, "-c", container, "--", "sh", "-c", script).stdout.strip()

    def events(self, reason):
        listed = self.cluster.get("events", "--field-selector", f"involvedObject.name={self.name},reason={reason}")["items"]
        return [event["message"] for event in listed]

    # ---- starting and stopping ----
    def test_sidecars_start_in_order_and_stop_in_reverse(self):
        always = {"restartPolicy": "Always"}
        self.create([container("main")], [container("init", "echo init >> /log/order"),
                                          container("one", startupProbe={"exec": {"command": ["true"]}, "periodSeconds": 1}, **always),
                                          container("two", **always)])
        self.ready()
        self.delete()
        self.assertEqual(self.order(), ["init", "start-one", "start-two", "start-main", "end-main", "end-two", "end-one"])

    def test_hooks(self):
        def hook(word):
            return {"exec": {"command": ["sh", "-c", f"echo {word} >> /log/order; sleep 0.5"]}}

        self.create([container("main", lifecycle={"postStart": hook("post"), "preStop": hook("pre")})])
        self.ready()
        self.delete()
        order = self.order()
        self.assertEqual((sorted(order[:2]), order[2:]), (["post", "start-main"], ["pre", "end-main"]))

    def test_a_failing_post_start_ends_the_container(self):
        self.create([container("main", lifecycle={"postStart": {"exec": {"command": ["false"]}}})])
        self.cluster.eventually("the event", lambda: self.events("FailedPostStartHook"))
        self.cluster.eventually("the container to be ended", lambda: "end-main" in self.order())

    # ---- probes ----
    def test_liveness(self):
        self.create([container("main", "if [ -e /log/again ]; then touch /tmp/well; fi; touch /log/again; sleep 100000",
                               livenessProbe={"exec": {"command": ["test", "-e", "/tmp/well"]}, "periodSeconds": 1, "failureThreshold": 2,
                                              "terminationGracePeriodSeconds": 1})])
        self.cluster.eventually("the restart", lambda: self.status()["restartCount"] == 1 and self.status()["ready"])
        self.assertEqual(self.status()["lastState"]["terminated"]["exitCode"], 137)
        self.assertIn("Container main failed liveness probe, will be restarted", self.events("Killing"))

    def test_startup_holds_readiness_back(self):
        self.create([container("main", startupProbe={"exec": {"command": ["test", "-e", "/log/begun"]}, "periodSeconds": 1, "failureThreshold": 60},
                               readinessProbe={"exec": {"command": ["test", "-e", "/log/fit"]}, "periodSeconds": 1})])
        self.cluster.eventually("a failed probe", lambda: any("Startup probe failed" in m for m in self.events("Unhealthy")))
        self.assertEqual((self.status()["started"], self.status()["ready"]), (False, False))
        (self.log / "begun").touch()
        self.cluster.eventually("the start", lambda: self.status()["started"])
        self.assertFalse(self.status()["ready"])
        (self.log / "fit").touch()
        self.ready()

    def test_readiness_gate(self):
        self.create([container("main")], readinessGates=[{"conditionType": "example.com/open"}])
        self.cluster.eventually("the container", lambda: self.status()["ready"])
        conditions = {c["type"]: c for c in self.cluster.get("pod", self.name)["status"]["conditions"]}
        self.assertEqual((conditions["Ready"]["status"], conditions["Ready"]["reason"]), ("False", "ReadinessGatesNotReady"))
        self.cluster.kubectl("patch", "pod", self.name, "--subresource=status", "-p", json.dumps(
            {"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}}))
        self.ready()

    # ---- resources ----
    def test_resize_in_place(self):
        def quota():
            pod = f"keelson-{self.cluster.id}/node1/kubepods/burstable/pod{uid}"
            files = [*pathlib.Path("/sys/fs/cgroup/cpu", pod).glob("*/cpu.cfs_quota_us"), *pathlib.Path("/sys/fs/cgroup", pod).glob("*/cpu.max")]
            return {file.read_text().split()[0] for file in files}

        # Guaranteed pods cannot be resized with cpuManagerPolicy: static.
        self.create([container("main", resources={"limits": {"cpu": "100m", "memory": "64Mi"}, "requests": {"memory": "32Mi"}})])
        self.ready()
        uid, before = self.cluster.get("pod", self.name)["metadata"]["uid"], self.status()
        self.assertIn("10000", quota())
        self.cluster.kubectl("patch", "pod", self.name, "--subresource=resize", "-p", json.dumps(
            {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "200m"}, "requests": {"cpu": "200m"}}}]}}))
        self.cluster.eventually("the new limit in the kernel", lambda: "20000" in quota())
        self.cluster.eventually("the status", lambda: self.status()["resources"]["limits"]["cpu"] == "200m")
        self.assertEqual(self.status()["containerID"], before["containerID"])

    def test_a_cpu_of_its_own(self):
        self.create([container("main", resources={"limits": {"cpu": "1", "memory": "32Mi"}})])
        self.ready()
        allowed = re.search(r"Cpus_allowed_list:\s+(\S+)", self.exec("cat /proc/1/status")).group(1)
        self.assertRegex(allowed, r"^\d+$")

    def test_an_empty_dir_over_its_limit_is_evicted(self):
        main = container("main", "dd if=/dev/zero of=/full/x bs=1M count=5; sleep 100000")
        main["volumeMounts"].append({"name": "full", "mountPath": "/full"})
        self.create([main], volumes=[{"name": "full", "emptyDir": {"sizeLimit": "1Mi"}}])
        self.cluster.eventually("the eviction", lambda: self.cluster.get("pod", self.name)["status"].get("reason") == "Evicted")
        self.assertIn('Usage of EmptyDir volume "full" exceeds the limit "1Mi"', self.cluster.get("pod", self.name)["status"]["message"])

    # ---- others ----
    def test_sub_path_expr(self):
        mount = {"name": "log", "mountPath": "/own", "subPathExpr": "pods/$(POD)"}
        main = container("main", "echo here > /own/file; sleep 100000",
                         env=[{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
        main["volumeMounts"].append(mount)
        self.create([main])
        self.cluster.eventually("the file", lambda: (self.log / "pods" / self.name / "file").exists())

    def test_a_debug_container(self):
        self.create([container("main")])
        self.ready()
        self.cluster.kubectl("debug", self.name, f"--image={IMAGE}", "--image-pull-policy=IfNotPresent", "--target=main", "--container=debugger",
                             "--", "sh", "-c", "sleep 100000")
        self.cluster.eventually("the debug container", lambda: "running" in self.status("ephemeralContainerStatuses")["state"])
        self.assertIn("start-main", self.exec("tr '\\0' ' ' < /proc/1/cmdline", container="debugger"))

    def test_an_image_that_is_not_there(self):
        self.create([container("main") | {"image": "127.0.0.1:1/absent:1"}])
        self.cluster.eventually("the reason", lambda: self.status()["state"]["waiting"]["reason"] in ("ErrImagePull", "ImagePullBackOff"))
        self.cluster.eventually("the wait", lambda: self.status()["state"]["waiting"]["reason"] == "ImagePullBackOff")
        self.assertTrue(any("Failed to pull image" in message for message in self.events("Failed")))

    def test_a_daemon_set_rolls_out_and_back(self):
        pods = ("pods", "-l", f"app={self.name}")
        labels = {"app": self.name}
        main = {"name": "main", "image": IMAGE, "command": ["sleep", "100000"], "env": [{"name": "WORD", "value": "one"}]}
        self.cluster.apply(json.dumps({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": self.name},
            "spec": {"selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [main]}}}}))
        self.addCleanup(self.cluster.kubectl, "delete", "ds", self.name, "--wait=false")

        def rolled_out(word):
            self.cluster.kubectl("rollout", "status", f"ds/{self.name}", "--timeout=60s")
            running = [p for p in self.cluster.get(*pods)["items"] if "deletionTimestamp" not in p["metadata"]]
            self.assertEqual([p["spec"]["containers"][0]["env"][0]["value"] for p in running], [word])
            return running[0]["metadata"]["name"]
        first = rolled_out("one")
        self.cluster.kubectl("set", "env", f"ds/{self.name}", "WORD=two")
        second = rolled_out("two")
        self.assertNotEqual(first, second)
        self.cluster.kubectl("rollout", "undo", f"ds/{self.name}")
        rolled_out("one")
        revisions = self.cluster.get("controllerrevisions", "-l", f"app={self.name}")["items"]
        self.assertEqual(sorted(r["revision"] for r in revisions), [2, 3])

    def test_a_static_pod_and_its_mirror(self):
        file, mirror = self.dir / "manifests/own.json", f"{self.name}-node1"
        (self.dir / "new").write_text(self.manifest([container("main")]))
        os.rename(self.dir / "new", file)
        self.cluster.eventually("the mirror", lambda: self.cluster.kubectl("get", "pod", mirror, check=False).returncode == 0)
        self.ready(mirror)
        self.assertIn("kubernetes.io/config.mirror", self.cluster.get("pod", mirror)["metadata"]["annotations"])
        uid = self.cluster.get("pod", mirror)["metadata"]["uid"]
        self.cluster.kubectl("delete", "pod", mirror, "--wait=false", "--grace-period=0", "--force")
        self.cluster.eventually("another mirror", lambda: self.cluster.get("pod", mirror)["metadata"]["uid"] != uid)
        self.assertEqual(self.order(), ["start-main"])
        (self.dir / "manifests/bad.yaml").write_text("a: [")  # must disturb nothing
        log = self.cluster.state / "nodes/node1/log/kubelet.log"
        self.cluster.eventually("the kubelet to report it", lambda: b"bad.yaml" in log.read_bytes())
        self.assertEqual(self.order(), ["start-main"])
        file.unlink()
        self.cluster.eventually("the end", lambda: self.order() == ["start-main", "end-main"])
        self.cluster.eventually("the mirror's end", lambda: self.cluster.kubectl("get", "pod", mirror, check=False).returncode != 0)

    # ---- the kubelet's server ----
    def ask_kubelet(self, path, *options):
        """Returns (status, body) of node1's kubelet."""
        answer = run(self.cluster.inside(["curl", "-sk", "-m", "10", "-w", "\\n%{http_code}", *options, f"https://{NODE_IP}:10250{path}"])).stdout
        body, _, status = answer.rpartition("\n")
        return int(status), body

    def test_who_may_ask_a_kubelet(self):
        self.create([container("main", "sleep 100000")])
        self.ready()
        exec_path = f"/exec/default/{self.name}/main?command=true&output=1"
        paths = {"/pods": "pods", "/runningpods/": "pods", "/metrics": "metrics", "/metrics/cadvisor": "metrics", "/metrics/probes": "metrics",
                 "/stats/summary": "stats", "/healthz": "healthz", "/configz": "configz", "/logs/": "log",
                 "/metrics/slis": "metrics", "/statusz": "statusz", "/flagz": "configz",
                 f"/containerLogs/default/{self.name}/main": "proxy"}
        of_proxy_too = ("pods", "healthz", "configz", "statusz", "proxy")
        owners = sorted(set(paths.values()))
        items = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"asks-{name}"}} for name in (*owners, "nothing")]
        rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        for name in owners:
            meta = {"metadata": {"name": f"asks-{name}"}}
            items += [{**rbac, **meta, "kind": "ClusterRole", "rules": [{"apiGroups": [""], "resources": [f"nodes/{name}"], "verbs": ["get"]}]},
                      {**rbac, **meta, "kind": "ClusterRoleBinding", "subjects": [{"kind": "ServiceAccount", "name": f"asks-{name}", "namespace": "default"}],
                       "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"asks-{name}"}}]
        everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        self.cluster.apply(everything)
        self.addCleanup(self.cluster.kubectl, "delete", "-f", "-", "--wait=false", stdin=everything)
        for credentials in ((), ("-H", "Authorization: Bearer of-nobody")):
            for path in paths:
                self.assertEqual(self.ask_kubelet(path, *credentials), (401, "Unauthorized"), path)
        elsewhere = self.cluster.kubectl("create", "token", "asks-pods", "--audience=elsewhere").stdout
        self.assertEqual(self.ask_kubelet("/pods", "-H", f"Authorization: Bearer {elsewhere}")[0], 401)
        for name in (*owners, "nothing"):
            token = ("-H", f"Authorization: Bearer {self.cluster.kubectl('create', 'token', f'asks-{name}').stdout}")
            for path, subresource in paths.items():
                may = name == subresource or (name == "proxy" and subresource in of_proxy_too)
                status, body = self.ask_kubelet(path, *token)
                self.assertEqual(status, 200 if may else 403, f"{name} {path}: {body[:300]}")
                if not may:
                    names = subresource if subresource not in of_proxy_too[:-1] else f"{subresource} proxy"
                    self.assertEqual(body, f"Forbidden (user=system:serviceaccount:default:asks-{name}, verb=get, resource=nodes, "
                                           f"subresource(s)=[{names}])")
            # `get` does not include exec.
            self.assertEqual(self.ask_kubelet(exec_path, "-X", "POST", *token)[0], 403, name)
        admin = ("--cert", self.cluster.state / "pki/admin.crt", "--key", self.cluster.state / "pki/admin.key")
        for path in paths:
            self.assertEqual(self.ask_kubelet(path, *admin)[0], 200, path)
        usage = self.ask_kubelet("/metrics/cadvisor", *admin)[1]
        for series in ('container_processes{container="main",', 'container_spec_cpu_shares{container="main",', 'container_memory_cache{container="main",',
                       'container_network_receive_bytes_total{container="",id="/"'):
            self.assertIn("\n" + series, usage)
        self.assertRegex(usage, rf'\ncontainer_network_receive_bytes_total{{[^}}]*image="[^"]*pause:[^}}]*pod="{self.name}"')


if __name__ == "__main__":
    unittest.main()
