"""kubectl on a fresh cluster, with real containerd, etcd and kubectl."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest

from cluster import NODE_IP, ROOT, Cluster, run

WEB = (ROOT / "tools/dev/demo.yaml").read_text()

TOOLBOX = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green, file.txt: "from a config map"}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {word: hunter2}
---
apiVersion: v1
kind: Pod
metadata:
  name: toolbox
  labels: {app: toolbox}
  annotations: {note: written-here}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: prepare
    image: localhost/busybox:1
    command: [sh, -c, 'echo prepared > /scratch/prepared']
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sh, -c, 'i=0; while true; do echo line $i; i=$((i+1)); sleep 1; done']
    env:
    - {name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}
    - {name: WORD, valueFrom: {secretKeyRef: {name: password, key: word}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: GREETING, value: "color is $(COLOR)"}
    resources:
      limits: {cpu: 200m, memory: 64Mi}
    volumeMounts:
    - {name: scratch, mountPath: /scratch}
    - {name: settings, mountPath: /etc/settings}
    - {name: password, mountPath: /etc/password}
    - {name: about, mountPath: /etc/about}
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: settings, configMap: {name: settings}}
  - {name: password, secret: {secretName: password}}
  - name: about
    downwardAPI:
      items:
      - {path: labels, fieldRef: {fieldPath: metadata.labels}}
"""

LIMITED = """
apiVersion: v1
kind: Pod
metadata:
  name: limited
  annotations: {kubernetes.io/ingress-bandwidth: 10M, kubernetes.io/egress-bandwidth: 10M}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: httpd
    image: localhost/busybox:1
    command: [sh, -c, 'mkdir /www && hostname > /www/index.html && exec httpd -f -p 8080 -h /www']
    ports: [{containerPort: 8080, hostPort: 8081}]
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
"""


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cls.k = staticmethod(cls.cluster.kubectl)

    def deploy_web(self):
        self.cluster.apply(WEB)
        self.k("rollout", "status", "deployment/web", "--timeout=90s")

    def toolbox(self):
        self.cluster.apply(TOOLBOX)
        self.k("wait", "--for=condition=Ready", "--timeout=60s", "pod/toolbox")

    def test_api_server_keeps_the_client_library_s_contract(self):
        """Runs the conformance suite of the fake API server on the real one."""
        suite = ROOT / "build" / os.environ.get("KEELSON_PRESET", "release") / "tests/client_server_conformance"
        result = run(self.cluster.inside([suite]), env=dict(os.environ, KEELSON_CONFORMANCE_KUBECONFIG=str(self.cluster.dir / "state/conf/admin.kubeconfig")))
        self.assertRegex(result.stdout, r"\[  PASSED  \] [1-9]")
        self.assertNotIn("SKIPPED", result.stdout)

    def test_service_answers_by_cluster_ip_and_node_port(self):
        self.deploy_web()
        address = self.cluster.jsonpath(".spec.clusterIP", "service", "web")
        port = self.cluster.jsonpath(".spec.ports[0].nodePort", "service", "web-nodeport")
        pods = {p["metadata"]["name"] for p in self.cluster.get("pods", "-l", "app=web")["items"]
                if "deletionTimestamp" not in p["metadata"]}
        self.assertEqual(len(pods), 3)
        seen = set()

        def all_seen():
            seen.add(self.cluster.fetch(f"http://{address}/").split()[-1])
            return seen == pods

        self.cluster.eventually("every replica to answer through the ClusterIP", all_seen)
        self.assertIn("hello from", self.cluster.fetch(f"http://{NODE_IP}:{port}/"))
        # Also from inside a pod, and when the pod itself answers.
        name = sorted(pods)[0]
        for _ in range(6):
            self.assertIn("hello from", self.k("exec", name, "--", "wget", "-qO-", f"http://{address}/").stdout)

    def test_service_without_endpoints_refuses(self):
        self.cluster.apply("apiVersion: v1\nkind: Service\nmetadata: {name: nobody}\nspec: {selector: {app: nobody}, ports: [{port: 80}]}\n")
        address = self.cluster.jsonpath(".spec.clusterIP", "service", "nobody")

        def refused():
            result = subprocess.run(self.cluster.inside(["curl", "-sS", "-m", "2", f"http://{address}/"]), capture_output=True, text=True)
            return result.returncode == 7  # curl: could not connect (and not 28, a time-out)

        self.cluster.eventually("a refused connection", refused)

    def test_scale_rollout_undo_edit_delete(self):
        self.deploy_web()
        self.k("scale", "deployment/web", "--replicas=4")
        self.k("rollout", "status", "deployment/web", "--timeout=60s")
        self.assertEqual(self.cluster.jsonpath(".status.readyReplicas", "deployment", "web"), "4")
        self.k("scale", "deployment/web", "--replicas=3")
        self.k("set", "env", "deployment/web", "STAGE=two")
        self.k("rollout", "status", "deployment/web", "--timeout=90s")
        self.assertIn("two", self.k("get", "deployment", "web", "-o", "yaml").stdout)
        self.k("rollout", "undo", "deployment/web")
        self.k("rollout", "status", "deployment/web", "--timeout=90s")
        self.assertNotIn("STAGE", self.k("get", "deployment", "web", "-o", "yaml").stdout)
        self.assertIn("REVISION", self.k("rollout", "history", "deployment/web").stdout)
        with tempfile.TemporaryDirectory() as directory:
            editor = pathlib.Path(directory, "editor")
            editor.write_text("#!/bin/sh\nexec sed -i 's/port: 80$/port: 81/' \"$1\"\n")
            editor.chmod(0o755)
            edited = subprocess.run(self.cluster.kubectl_args("edit", "service", "web"), capture_output=True, text=True,
                                    env=dict(self.cluster.env, KUBE_EDITOR=str(editor)))
        self.assertEqual(edited.returncode, 0, edited.stderr)
        self.assertEqual(self.cluster.jsonpath(".spec.ports[0].port", "service", "web"), "81")
        # Applying the manifest again would keep the port that was edited in, so the Service goes too.
        self.k("delete", "deployment/web", "service/web")
        self.cluster.eventually("the pods to go with their Deployment",
                                lambda: not self.cluster.get("pods", "-l", "app=web")["items"])
        self.assertEqual(self.cluster.get("replicasets", "-l", "app=web")["items"], [])

    def test_get_and_describe_tell(self):
        self.toolbox()
        wide = self.k("get", "pod", "toolbox", "-o", "wide").stdout
        self.assertRegex(wide, r"NAME +READY +STATUS +RESTARTS +AGE +IP +NODE")
        self.assertRegex(wide, r"toolbox +1/1 +Running +0 +\S+ +10\.244\.0\.\d+ +node1")
        described = self.k("describe", "pod", "toolbox").stdout
        for event in ("Scheduled", "Pulled", "Created", "Started"):
            self.assertRegex(described, rf"Normal +{event} ")
        self.assertIn("QoS Class:", described)
        self.assertRegex(self.k("get", "nodes").stdout, r"node1 +Ready +\S+ +\S+ +v1\.36\.")
        self.assertIn("Allocatable:", self.k("describe", "node", "node1").stdout)

    def test_environment_and_volumes(self):
        self.toolbox()

        def sh(script):
            return self.k("exec", "toolbox", "-c", "main", "--", "sh", "-c", script).stdout.strip()

        self.assertEqual(sh("echo $COLOR $WORD $NODE"), "green hunter2 node1")
        self.assertEqual(sh("echo $GREETING"), "color is green")
        self.assertEqual(sh("cat /scratch/prepared"), "prepared")
        self.assertEqual(sh("cat /etc/settings/file.txt"), "from a config map")
        self.assertEqual(sh("cat /etc/password/word"), "hunter2")
        self.assertEqual(sh("cat /etc/about/labels"), 'app="toolbox"')
        token = sh("cat /var/run/secrets/kubernetes.io/serviceaccount/token")
        self.assertEqual(token.count("."), 2)
        self.assertIn("BEGIN CERTIFICATE", sh("cat /var/run/secrets/kubernetes.io/serviceaccount/ca.crt"))
        self.assertEqual(sh("cat /var/run/secrets/kubernetes.io/serviceaccount/namespace"), "default")

    def test_host_port_and_bandwidth(self):
        """The pod stays, so that ./dev down must find what the plugins created for it."""
        self.cluster.apply(LIMITED)
        self.k("wait", "--for=condition=Ready", "--timeout=60s", "pod/limited")
        self.assertEqual(self.cluster.fetch(f"http://{NODE_IP}:8081/"), "limited\n")

    def test_logs_follow(self):
        self.toolbox()
        follower = self.cluster.start_kubectl("logs", "-f", "toolbox", stdout=subprocess.PIPE)
        self.addCleanup(follower.stdout.close)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)
        numbers = [int(follower.stdout.readline().split()[1]) for _ in range(4)]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 4)))
        self.assertEqual(len(self.k("logs", "toolbox", "--tail=2").stdout.splitlines()), 2)
        self.assertRegex(self.k("logs", "toolbox", "--timestamps", "--tail=1").stdout, r"^\d{4}-\d\d-\d\dT.* line \d+")

    def test_exec_with_piped_stdin_half_closes(self):
        self.toolbox()
        # `cat` ends only when its stdin does, so the half-close has to reach it.
        self.assertEqual(self.k("exec", "-i", "toolbox", "--", "cat", stdin="through the pipe\n").stdout, "through the pipe\n")
        payload = "0123456789abcdef" * 65536
        result = self.k("exec", "-i", "toolbox", "--", "sh", "-c", "wc -c", stdin=payload)
        self.assertEqual(result.stdout.strip(), str(len(payload)))
        failed = self.k("exec", "toolbox", "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
        self.assertEqual((failed.returncode, failed.stdout), (7, "out\n"))
        self.assertIn("err\n", failed.stderr)

    def test_exec_with_a_terminal(self):
        self.toolbox()
        self.cluster.kubectl_args()
        child, terminal = pty.fork()
        if child == 0:
            args = self.cluster.kubectl_args("exec", "-it", "toolbox", "--", "sh")
            os.execvpe(args[0], args, dict(self.cluster.env, TERM="dumb"))
        os.write(terminal, b"tty; echo answer-$((6*7)); exit 3\n")
        output, end = b"", time.monotonic() + 30
        while time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    chunk = os.read(terminal, 4096)
                except OSError:
                    break
                if not chunk:
                    break
                output += chunk
        _, status = os.waitpid(child, 0)
        self.assertIn(b"answer-42", output)
        self.assertIn(b"/dev/pts/", output)
        self.assertEqual(os.waitstatus_to_exitcode(status), 3)

    def test_cp_both_ways(self):
        self.toolbox()
        with tempfile.TemporaryDirectory() as directory:
            source, copy = pathlib.Path(directory, "source"), pathlib.Path(directory, "copy")
            source.write_bytes(os.urandom(300_000))
            self.k("cp", str(source), "toolbox:/tmp/there")
            self.k("cp", "toolbox:/tmp/there", str(copy))
            self.assertEqual(source.read_bytes(), copy.read_bytes())

    def test_port_forward(self):
        self.deploy_web()
        forward = self.cluster.start_kubectl("port-forward", "deployment/web", ":8080", stdout=subprocess.PIPE)
        self.addCleanup(forward.stdout.close)
        self.addCleanup(forward.wait)
        self.addCleanup(forward.send_signal, signal.SIGTERM)
        port = re.search(r"127\.0\.0\.1:(\d+)", forward.stdout.readline()).group(1)
        for _ in range(3):
            self.assertIn("hello from", self.cluster.fetch(f"http://127.0.0.1:{port}/", timeout=10))

    def websocket(self, path, protocol, *messages, until=None):
        """Returns the negotiated protocol, and the server's output to its end or to a message with `until`."""
        script = ROOT / "tests/e2e/websocket.py"
        url = f"https://{NODE_IP}:6443/api/v1/namespaces/default/{path}"
        client = subprocess.Popen(self.cluster.inside(["timeout", "60", "python3", script, self.cluster.state / "pki", url, protocol, *messages]),
                                  stdout=subprocess.PIPE, text=True)
        try:
            said = []
            for line in client.stdout:
                said.append(json.loads(line))
                if until and until in said[-1]:
                    break
            return said
        finally:
            client.kill()
            client.wait()
            client.stdout.close()

    def test_websockets_of_every_age(self):
        self.toolbox()
        exec_path = "pods/toolbox/exec?container=main&stdout=1&stderr=1&command=sh&command=-c&command="
        for protocol in ("channel.k8s.io", ""):
            agreed, *said = self.websocket(exec_path + "echo+hello", protocol)
            self.assertEqual(agreed, [protocol] if protocol else [])
            self.assertEqual([m for m in said if len(m) > 1], ["\x01hello\n"])
        for protocol in ("v4.channel.k8s.io", "v5.channel.k8s.io"):
            agreed, *said = self.websocket(exec_path + "echo+hello", protocol)
            self.assertEqual(agreed, [protocol])
            self.assertIn("\x01hello\n", said)
            self.assertEqual(json.loads(said[-1][1:])["status"], "Success")
        said = self.websocket(exec_path + "exit+3", "channel.k8s.io")
        self.assertIn("exit code 3", said[-1])
        said = self.websocket(exec_path + "echo+hello", "base64.channel.k8s.io")
        self.assertIn("1aGVsbG8K", said)

        agreed, first, *said = self.websocket("pods/toolbox/log?container=main&limitBytes=7", "binary.k8s.io")
        self.assertEqual((agreed, first, "".join(said)), (["binary.k8s.io"], "", "line 0\n"))

        self.deploy_web()
        pod = self.cluster.get("pods", "-l", "app=web")["items"][0]["metadata"]["name"]
        agreed, *said = self.websocket(f"pods/{pod}/portforward?ports=8080", "v4.channel.k8s.io", r"\x00GET / HTTP/1.0\r\n\r\n", until="hello from")
        self.assertEqual(agreed, ["v4.channel.k8s.io"])
        self.assertEqual(said[:2], ["\x00\x90\x1f", "\x01\x90\x1f"])
        self.assertIn("hello from", said[-1])

    def test_proxies(self):
        self.deploy_web()
        pod = self.cluster.get("pods", "-l", "app=web")["items"][0]["metadata"]["name"]
        for path in (f"pods/{pod}:8080", f"pods/http:{pod}:8080", f"pods/{pod}", "services/web", "services/http:web:80"):
            said = self.k("get", "--raw", f"/api/v1/namespaces/default/{path}/proxy/").stdout
            self.assertIn("hello from", said, path)
            # Without the trailing slash the path redirects there.
            self.assertIn("hello from", self.k("get", "--raw", f"/api/v1/namespaces/default/{path}/proxy").stdout, path)
        for path, error in (("services/ftp:web:80", 'invalid service request "ftp:web:80"'), ("services/web:81", 'no service port "81" found for service "web"')):
            self.assertIn(error, self.k("get", "--raw", f"/api/v1/namespaces/default/{path}/proxy/", check=False).stderr)

    def test_bad_input_is_refused_and_stores_nothing(self):
        cases = [
            ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad"},"data":{"a":', "BadRequest", "400"),
            ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad"},"data":{"a":1}}', "BadRequest", "400"),
            ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"Not_A_Name"}}', "Invalid", "422"),
            ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad"},"data":{"a":"' + "x" * (3 << 20) + '"}}',
             "RequestEntityTooLarge", "413"),
        ]
        before = {c["metadata"]["name"] for c in self.cluster.get("configmaps")["items"]}
        state = self.cluster.state
        for body, reason, code in cases:
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(body)
                file.flush()
                result = subprocess.run(self.cluster.inside([
                    "curl", "-sS", "--cacert", state / "pki/ca.crt", "--cert", state / "pki/admin.crt", "--key", state / "pki/admin.key",
                    "-H", "Content-Type: application/json", "--data-binary", f"@{file.name}", "-w", "\n%{http_code}",
                    f"https://{NODE_IP}:6443/api/v1/namespaces/default/configmaps"]), capture_output=True, text=True)
            self.assertIn(f'"reason":"{reason}"', result.stdout.replace(": ", ":"), body[:100])
            self.assertTrue(result.stdout.endswith(f"\n{code}"), result.stdout[-200:])
        self.assertEqual(before, {c["metadata"]["name"] for c in self.cluster.get("configmaps")["items"]})
        unknown = self.k("create", "-f", "-", check=False, stdin="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndota: {a: b}\n")
        self.assertNotEqual(unknown.returncode, 0)
        self.assertIn('unknown field "dota"', unknown.stderr)


if __name__ == "__main__":
    unittest.main()
