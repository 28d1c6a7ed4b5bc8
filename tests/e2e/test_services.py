"""Services on two nodes: DNS from pods with either libc, every kind of DNS query; and the output of `nodectl trace`."""
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import time
import types
import unittest

from cluster import ROOT, Cluster, run

HERE = pathlib.Path(__file__).parent
DNS = "10.96.0.10"
OUTSIDE = "192.168.77.254"  # the machine around the nodes
POOL = "192.168.77.200-192.168.77.209"  # load balancer addresses on the nodes' link
ZONE = "default.svc.cluster.local"
LIBCS = {"glibc": ["/tools/ld.so", "--library-path", "/tools", "/tools/resolve-glibc"], "musl": ["/tools/resolve-musl"]}

# One pod per node, HOSTNAME.db.
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: on-NODE, labels: {app: web}}
spec:
  nodeName: NODE
  hostname: host-NODE
  subdomain: db
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sh, -c, "mkdir /www; hostname > /www/who; exec httpd -f -p 8080 -h /www"]
    readinessProbe: {httpGet: {path: /who, port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: tools, mountPath: /tools}]
  volumes: [{name: tools, hostPath: {path: TOOLS}}]
---
"""
SERVICES = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: web}, ports: [{name: http, port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: empty}
spec: {selector: {app: nobody}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {type: ExternalName, externalName: www.example.com}
---
apiVersion: v1
kind: Service
metadata: {name: alias}
spec: {type: ExternalName, externalName: web.default.svc.cluster.local}
---
apiVersion: v1
kind: Service
metadata: {name: many}
spec: {clusterIP: None, ports: [{name: http, port: 80}]}
---
"""


def many_endpoints(count):
    """More than fits into a UDP packet."""
    return json.dumps({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "many-1", "labels": {"kubernetes.io/service-name": "many"}},
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        "endpoints": [{"addresses": [f"192.0.2.{i + 1}"], "conditions": {"ready": True}} for i in range(count)]})


def make_tools(directory):
    """Builds a resolver program with each libc; the glibc one includes its libraries."""
    directory.mkdir()
    run(["musl-gcc", "-static", "-O1", "-o", directory / "resolve-musl", HERE / "resolve.c"])
    run(["gcc", "-O1", "-o", directory / "resolve-glibc", HERE / "resolve.c"])
    for library in re.findall(r"(/\S+)", run(["ldd", directory / "resolve-glibc"]).stdout):
        loader = "ld-linux" in library
        shutil.copy(library, directory / ("ld.so" if loader else pathlib.Path(library).name))


class ServicesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("kdig", "musl-gcc"):
            if not shutil.which(program):
                raise unittest.SkipTest(f"no {program} on this machine")
        cls.cluster = Cluster(nodes=2)
        cls.addClassCleanup(cls.cluster.down)
        resolv_conf = cls.cluster.dir / "resolv.conf"
        resolv_conf.write_text(f"nameserver {OUTSIDE}\n")
        cls.cluster.env["KEELSON_PROXY_FLAGS"] = (f"--resolv-conf {resolv_conf} --stub-domain corp.example={OUTSIDE}:5353 "
                                                  f"--stub-domain loop.example={OUTSIDE}:5354 --announce-addresses {POOL}")
        cls.cluster.env["KEELSON_API_FLAGS"] = f"--load-balancer-addresses {POOL}"
        make_tools(cls.cluster.dir / "tools")
        cls.cluster.up()
        cls.upstream = cls.start_server(53, "www.example.com=192.0.2.80")
        cls.addClassCleanup(lambda: cls.upstream.communicate())
        stub = cls.start_server(5353, "git.corp.example=192.0.2.53")
        cls.addClassCleanup(stub.communicate)
        pods = PODS.replace("TOOLS", str(cls.cluster.dir / "tools"))
        cls.cluster.apply("".join(pods.replace("NODE", node) for node in cls.cluster.nodes) + SERVICES)
        cls.cluster.apply(many_endpoints(60))
        cls.pods = [f"on-{node}" for node in cls.cluster.nodes]
        cls.cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", *(f"pod/{pod}" for pod in cls.pods))
        cls.pod_ip = {pod: cls.cluster.jsonpath(".status.podIP", "pod", pod) for pod in cls.pods}
        cls.web = cls.cluster.jsonpath(".spec.clusterIP", "service", "web")

    @classmethod
    def start_server(cls, port, *names):
        server = subprocess.Popen(cls.cluster.inside(["python3", HERE / "fake_dns.py", OUTSIDE, port, *names]),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert server.stdout.readline() == "ready\n"
        return server

    # ---- names from pods ----
    def resolve(self, pod, libc, *names):
        """The addresses of each name, or the resolver's error."""
        result = self.cluster.kubectl("exec", pod, "--", *LIBCS[libc], *names, check=False)
        return result.stdout.splitlines()

    def test_names_from_pods(self):
        both = " ".join(sorted(self.pod_ip.values()))
        api = self.cluster.jsonpath(".spec.clusterIP", "service", "kubernetes")
        wanted = {
            "web": self.web, "web.default": self.web, "web.default.svc": self.web, f"web.{ZONE}": self.web,
            f"web.{ZONE}.": self.web, "kubernetes": api, "kubernetes.default.svc.cluster.local": api,
            "db": both, "host-node1.db": self.pod_ip["on-node1"], f"host-node2.db.{ZONE}": self.pod_ip["on-node2"],
            "alias": self.web, "outside": "192.0.2.80", "www.example.com": "192.0.2.80", "git.corp.example": "192.0.2.53",
            "kube-dns.kube-system": DNS}
        for pod in self.pods:
            for libc in LIBCS:
                # A single exec, because the last endpoints may reach a node late.
                self.cluster.eventually(f"all names in {pod} with {libc}",
                                        lambda: dict(zip(wanted, self.resolve(pod, libc, *wanted))) == wanted or
                                        self.fail(self.resolve(pod, libc, *wanted)), 30)
                for missing in self.resolve(pod, libc, "nobody", "nobody.default.svc.cluster.local", "www.nowhere.example"):
                    self.assertRegex(missing, "(?i)name .*(not|unknown|does not)")

    def test_what_the_kubelet_writes(self):
        text = self.cluster.kubectl("exec", "on-node2", "--", "cat", "/etc/resolv.conf").stdout
        self.assertIn(f"nameserver {DNS}\n", text)
        self.assertIn(f"search {ZONE} svc.cluster.local cluster.local", text)
        self.assertEqual(self.cluster.jsonpath(".spec.clusterIP", "-n", "kube-system", "service", "kube-dns"), DNS)

    # ---- every kind of query ----
    def ask(self, name, kind="A", *options, node="node2", check=True):
        printed = run(self.cluster.on_node(node, ["kdig", f"@{DNS}", name, kind, "+timeout=2", "+retry=2", *options]), check=check).stdout
        out = types.SimpleNamespace(text=printed, status="", flags=[], answer=[], authority=[], additional=[])
        if found := re.search(r"status: (\w+)", printed):
            out.status, out.flags = found.group(1), re.search(r"Flags: ([^;]*)", printed).group(1).split()
        section = None
        for line in printed.splitlines():
            if found := re.match(r";; (\w+) SECTION:", line):
                section = getattr(out, found.group(1).lower(), None)
            elif line and not line.startswith(";") and section is not None:
                section.append(" ".join(line.split()))
        return out

    def test_questions(self):
        web, ip = f"web.{ZONE}.", self.web
        soa = "cluster.local. 5 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. "
        reverse = ".".join(reversed(ip.split("."))) + ".in-addr.arpa."
        srv = f"_http._tcp.{web}"
        pod = self.pod_ip["on-node1"]
        for name, kind, status, answer in (
                (web, "A", "NOERROR", [f"{web} 5 IN A {ip}"]),
                (web, "AAAA", "NOERROR", []),
                (web, "MX", "NOERROR", []),
                (ZONE, "A", "NOERROR", []),
                (f"nobody.{ZONE}", "A", "NXDOMAIN", []),
                (srv, "SRV", "NOERROR", [f"{srv} 5 IN SRV 0 100 80 {web}"]),
                (f"_http._udp.{web}", "SRV", "NXDOMAIN", []),
                (reverse, "PTR", "NOERROR", [f"{reverse} 5 IN PTR {web}"]),
                (f"{pod.replace('.', '-')}.default.pod.cluster.local.", "A", "NOERROR",
                 [f"{pod.replace('.', '-')}.default.pod.cluster.local. 5 IN A {pod}"]),
                ("dns-version.cluster.local.", "TXT", "NOERROR", ['dns-version.cluster.local. 28800 IN TXT "1.1.0"']),
                ("cluster.local.", "NS", "NOERROR", ["cluster.local. 5 IN NS ns.dns.cluster.local."])):
            for option in ("+notcp", "+tcp", "+bufsize=4096"):
                with self.subTest(name=name, kind=kind, option=option):
                    out = self.ask(name, kind, option)
                    self.assertEqual((out.status, out.answer), (status, answer), out.text)
                    self.assertIn("aa", out.flags)
                    self.assertEqual(bool(out.authority), not answer)
                    if not answer:
                        self.assertTrue(out.authority[0].startswith(soa), out.authority)

    def test_headless_endpoints(self):
        answers = {f"host-{node}.db.{ZONE}.": self.pod_ip[f"on-{node}"] for node in self.cluster.nodes}
        srv = self.ask(f"_http._tcp.db.{ZONE}.", "SRV")
        self.assertEqual(sorted(srv.answer), [f"_http._tcp.db.{ZONE}. 5 IN SRV 0 50 8080 {name}" for name in sorted(answers)])
        self.assertEqual(sorted(srv.additional), sorted(f"{name} 5 IN A {ip}" for name, ip in answers.items()))
        for name, ip in answers.items():
            reverse = ".".join(reversed(ip.split("."))) + ".in-addr.arpa."
            self.assertEqual(self.ask(reverse, "PTR").answer, [f"{reverse} 5 IN PTR {name}"])

    def test_what_does_not_fit(self):
        cut = self.ask(f"many.{ZONE}.", "A", "+notcp", "+ignore", "+noedns")
        self.assertIn("tc", cut.flags)
        self.assertLess(len(cut.answer), 60)
        whole = self.ask(f"many.{ZONE}.", "A")  # retries over TCP
        self.assertNotIn("tc", whole.flags)
        self.assertEqual(len(whole.answer), 60)

    # ---- external names ----
    def test_others_answers_when_they_do_not(self):
        first = self.ask("www.example.com.", node="node1")
        self.assertEqual(first.answer[0].split()[-1], "192.0.2.80")
        self.assertNotIn("aa", first.flags)
        self.assertEqual(self.ask("www.nowhere.example.", node="node1").status, "NXDOMAIN")
        self.upstream.communicate()
        self.addCleanup(lambda: self.cluster.eventually("the server to be asked again", lambda: self.ask(
            "www.nowhere.example.", node="node1", check=False).status == "NXDOMAIN", 30))
        self.addCleanup(lambda: setattr(type(self), "upstream", self.start_server(53, "www.example.com=192.0.2.80")))
        # Cached answers are served stale for a while; others fail.
        stale = self.cluster.eventually("a stale answer", lambda: next(
            iter(a for a in self.ask("www.example.com.", "A", "+timeout=7", node="node1").answer if " 30 IN A " in a), None), 40)
        self.assertTrue(stale.endswith("192.0.2.80"))
        self.assertEqual(self.ask("other.example.com.", "A", "+timeout=7", node="node1").status, "SERVFAIL")
        self.assertEqual(self.ask(f"web.{ZONE}.", node="node1").status, "NOERROR")

    def test_a_server_that_leads_back(self):
        """The queries that loop.example's server received from node1."""
        run(self.cluster.inside(["ip", "route", "add", DNS, "via", "192.168.77.1"]))
        relay = self.start_server(5354, f"relay={DNS}")
        self.addCleanup(relay.communicate)
        self.cluster.dev("stop", "kube-proxy", "1")
        log = self.cluster.state / "nodes/node1/log/kube-proxy.log"
        before = len(log.read_text())  # the stopped one may have logged it, too
        self.cluster.dev("start", "kube-proxy", "1")
        self.cluster.eventually("the loop to be found", lambda: "come back" in log.read_text()[before:], 20)
        begin = time.monotonic()
        self.assertEqual(self.ask("www.loop.example.", node="node1").status, "SERVFAIL")
        self.assertLess(time.monotonic() - begin, 2)  # at the first attempt
        self.assertEqual(self.ask("git.corp.example.", node="node1").status, "NOERROR")

    # ---- life ----
    def test_killed_and_stopped(self):
        def addresses():
            return run(self.cluster.on_node("node2", ["ip", "-br", "addr", "show", "kube-dns0"]), check=False).stdout

        name = f"web.{ZONE}."
        self.addCleanup(self.cluster.dev, "start", "kube-proxy", "2")
        self.cluster.kill("kube-proxy", "node2")
        self.assertIn(f"{DNS}/32", addresses())
        self.assertEqual(self.ask(name, node="node1").status, "NOERROR")
        self.cluster.dev("start", "kube-proxy", "2")
        self.cluster.eventually("answers again", lambda: self.ask(name, check=False).status == "NOERROR", 20)
        self.cluster.dev("stop", "kube-proxy", "2")
        self.assertEqual(addresses(), "")
        self.cluster.dev("start", "kube-proxy", "2")
        self.cluster.eventually("answers again", lambda: self.ask(name, check=False).status == "NOERROR", 20)

    def test_a_thousand_connections_outlive_kube_proxy(self):
        count, server = 1000, "192.168.77.2"
        self.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "echo"},
                                       "spec": {"ports": [{"name": "echo", "port": 7}]}}))
        self.cluster.apply(json.dumps({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "echo-1", "labels": {"kubernetes.io/service-name": "echo"}},
            "ports": [{"name": "echo", "port": 7007, "protocol": "TCP"}], "endpoints": [{"addresses": [server]}]}))
        address = self.cluster.jsonpath(".spec.clusterIP", "service", "echo")

        def start(node, *args):
            process = subprocess.Popen(self.cluster.on_node(node, ["python3", HERE / "many_connections.py", *args]),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.communicate)
            self.assertEqual(process.stdout.readline(), "ready\n")
            return process

        def answered():
            client.stdin.write("are you there?\n")
            client.stdin.flush()
            return int(client.stdout.readline())

        start("node2", "serve", f"{server}:7007")
        self.cluster.eventually("rules of the Service", lambda: run(self.cluster.on_node("node1", [
            "nft", "get", "element", "ip", "keelson-proxy", "services", "{", address, ".", "tcp", ".", "7", "}"])), 20)
        client = start("node1", "hold", f"{address}:7", str(count))
        self.addCleanup(self.cluster.dev, "start", "kube-proxy", "1")
        self.assertEqual(answered(), count)
        self.cluster.kill("kube-proxy", "node1")
        self.assertEqual(answered(), count)
        self.cluster.dev("start", "kube-proxy", "1")
        self.assertEqual(answered(), count)
        self.cluster.dev("stop", "kube-proxy", "1")
        self.cluster.dev("start", "kube-proxy", "1")
        self.assertEqual(answered(), count)

    def test_ready_and_metrics(self):
        self.ask(f"web.{ZONE}.")
        page = "http://127.0.0.1:10249"
        self.assertEqual(self.cluster.fetch_from("node2", f"{page}/ready"), "OK")
        metrics = self.cluster.fetch_from("node2", f"{page}/metrics")
        count = re.search(r'coredns_dns_requests_total\{family="1",proto="udp",server="dns://:53",type="A",view="",zone="\."\} (\d+)', metrics)
        self.assertGreater(int(count.group(1)), 0)
        self.assertIn('coredns_dns_responses_total{plugin="kubernetes",rcode="NOERROR"', metrics)

    def test_how_long_changes_take(self):
        """The latency from the trigger of an endpoints change, as the controller recorded it, to the kernel."""
        numbers = itertools.count()

        def measured():
            """The metric's count, after it has grown by a Service with endpoints."""
            self.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"fresh-{next(numbers)}"},
                                           "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}))
            page = self.cluster.fetch_from("node2", "http://127.0.0.1:10249/metrics")
            name = r'kubeproxy_network_programming_duration_seconds_%s\{ip_family="IPv4"\} (\S+)'
            count, total = (float(re.search(name % what, page).group(1)) for what in ("count", "sum"))
            return count and total / count

        # Timestamps in annotations have whole seconds.
        self.assertLess(self.cluster.eventually("a change to be measured", measured, 20), 10)

    # ---- a whole application ----
    def test_guestbook(self):
        self.cluster.kubectl("apply", "-f", ROOT / "docs/examples/guestbook.yaml")
        for tier in ("entries", "entries-read", "frontend"):
            self.cluster.kubectl("rollout", "status", f"deployment/{tier}", "--timeout=90s")
        nodes = {p["spec"]["nodeName"] for p in self.cluster.get("pods", "-l", "app=guestbook")["items"]}
        self.assertEqual(nodes, set(self.cluster.nodes))
        port = self.cluster.jsonpath(".spec.ports[0].nodePort", "service", "frontend")
        pages = [f"http://192.168.77.{i + 1}:{port}/cgi-bin/guestbook" for i in range(2)]
        for i, page in enumerate(pages):
            self.cluster.eventually("an entry to be taken", lambda: f"word-{i}" in self.cluster.fetch(f"{page}?word-{i}"))
        for _ in range(5):  # several pods may answer
            for page in pages:
                self.cluster.eventually("both entries to be read", lambda: {"word-0", "word-1"} <= set(self.cluster.fetch(page).split()))

    # ---- from outside ----
    def test_a_load_balancer_address(self):
        self.cluster.apply("""
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
""")
        self.addCleanup(self.cluster.kubectl, "delete", "service", "front")
        address = self.cluster.eventually("an address of the pool",
                                          lambda: self.cluster.jsonpath(".status.loadBalancer.ingress[0].ip", "service", "front"))
        self.assertEqual(address, POOL.split("-")[0])
        page = f"http://{address}/who"
        self.cluster.eventually("an answer", lambda: self.cluster.fetch(page).startswith("host-"))

        def learned():
            shown = json.loads(run(self.cluster.inside(["ip", "-j", "neigh", "show", address])).stdout)
            return shown[0].get("lladdr") if shown else None

        def mac(node):
            routed = json.loads(run(self.cluster.on_node(node, ["ip", "-j", "route", "get", OUTSIDE])).stdout)
            return json.loads(run(self.cluster.on_node(node, ["ip", "-j", "link", "show", routed[0]["dev"]])).stdout)[0]["address"]

        speaker = next(node for node in self.cluster.nodes if mac(node) == learned())
        heir = next(node for node in self.cluster.nodes if node != speaker)
        self.addCleanup(self.cluster.dev, "start", "kube-proxy", speaker.removeprefix("node"))
        self.cluster.kill("kube-proxy", speaker)
        self.cluster.eventually("the other node to tell that it has the address", lambda: learned() == mac(heir), 30)
        self.assertTrue(self.cluster.fetch(page).startswith("host-"))

    # ---- packet traces ----
    def trace(self, service, *arguments, node="node1"):
        program = pathlib.Path(self.cluster.env.get("KEELSON_BIN") or ROOT / "build" / self.cluster.env.get("KEELSON_PRESET", "release") / "bin")
        if not (program / "nodectl").exists():
            self.skipTest(f"no nodectl in {program}")
        config = self.cluster.state / "conf/admin.kubeconfig"
        result = run(self.cluster.on_node(node, [program / "nodectl", "--kubeconfig", config, "trace", "service", service, "-o", "json", *arguments]),
                     check=False)
        self.assertIn(result.returncode, (0, 2), result.stderr)
        return result.returncode, json.loads(result.stdout)

    def test_trace(self):
        for node in self.cluster.nodes:
            for source in (("host",), ("pod", f"default/on-{node}")):
                code, report = self.trace("default/web:http", "--from", *source, node=node)
                self.assertEqual(code, 0, report)
                (path,) = report["paths"]
                self.assertEqual(path["verdict"], "Delivered")
                self.assertEqual(path["rulesNotUnderstood"], [])
                self.assertEqual({b["pod"]: (b["address"], b["node"]) for b in path["backends"]},
                                 {f"default/{pod}": (ip, pod.removeprefix("on-")) for pod, ip in self.pod_ip.items()})
        code, report = self.trace("default/empty")
        self.assertEqual((code, report["paths"][0]["verdict"]), (2, "Rejected"))
        self.assertEqual([p["reason"] for p in report["paths"][0]["problems"]], ["NoEndpoints"])
        code, report = self.trace("kube-system/kube-dns")
        self.assertEqual((code, {p["verdict"] for p in report["paths"]}), (0, {"Local"}))
        code, report = self.trace("default/outside")
        self.assertIn("www.example.com", report["notes"][0])

    def test_trace_finds_what_is_missing(self):
        table = ["table", "ip", "keelson-proxy"]
        self.addCleanup(self.cluster.eventually, "repaired", lambda: self.trace("default/web", node="node2")[0] == 0, 60)
        self.cluster.dev("stop", "kube-proxy", "2")
        self.addCleanup(self.cluster.dev, "start", "kube-proxy", "2")
        run(self.cluster.on_node("node2", ["nft", "delete", *table]))
        code, report = self.trace("default/web", node="node2")
        self.assertEqual((code, [p["reason"] for p in report["paths"][0]["problems"]]), (2, ["NotProgrammed"]))


if __name__ == "__main__":
    unittest.main()
