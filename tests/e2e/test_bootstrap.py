"""A kubelet joins with a bootstrap token, and gets both of its certificates from the cluster."""
import json
import unittest

from cluster import Cluster, run

TOKEN_ID, TOKEN_SECRET = "abcdef", "0123456789abcdef"

MANIFEST = f"""
apiVersion: v1
kind: Secret
metadata: {{name: bootstrap-token-{TOKEN_ID}, namespace: kube-system}}
type: bootstrap.kubernetes.io/token
stringData:
  token-id: {TOKEN_ID}
  token-secret: {TOKEN_SECRET}
  usage-bootstrap-authentication: "true"
""" + "".join(f"""---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: "{name}"}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{role}"}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "{group}"}}]
""" for name, role, group in (
    ("join", "system:node-bootstrapper", "system:bootstrappers"),
    ("first-certificate", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", "system:bootstrappers"),
    ("next-certificate", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes")))


class BootstrapTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up()
        cls.cluster.apply(MANIFEST)

    def requests(self, signer):
        return [item for item in self.cluster.get("csr")["items"] if item["spec"]["signerName"] == f"kubernetes.io/{signer}"]

    def bootstrap_kubeconfig(self):
        """The admin's kubeconfig, with the token in place of the certificate."""
        config = json.loads(self.cluster.kubectl("config", "view", "--raw", "-o", "json").stdout)
        config["users"][0]["user"] = {"token": f"{TOKEN_ID}.{TOKEN_SECRET}"}
        path = self.cluster.dir / "bootstrap.kubeconfig"
        path.write_text(json.dumps(config))
        return path

    def test_joins_and_serves(self):
        kubeconfig = self.cluster.state / "nodes/node1/conf/kubelet.kubeconfig"
        certificates = self.cluster.dir / "certificates"
        self.cluster.dev("stop", "kubelet")
        kubeconfig.unlink()
        self.cluster.kubectl("delete", "node", "--all")
        self.cluster.dev("start", "kubelet", KEELSON_KUBELET_FLAGS=f"--bootstrap-kubeconfig {self.bootstrap_kubeconfig()} "
                         f"--cert-dir {certificates} --rotate-certificates --rotate-server-certificates")
        self.cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
        [request] = self.requests("kube-apiserver-client-kubelet")
        self.assertEqual(request["spec"]["username"], f"system:bootstrap:{TOKEN_ID}")
        self.assertEqual(request["status"]["conditions"][0]["reason"], "AutoApproved")
        current = certificates / "kubelet-client-current.pem"
        self.assertIn(str(current), kubeconfig.read_text())
        self.assertEqual(current.stat().st_mode & 0o777, 0o600)
        subject = run(["openssl", "x509", "-in", current, "-noout", "-subject", "-nameopt", "RFC2253"]).stdout
        self.assertRegex(subject, r"CN=system:node:.*,O=system:nodes")

        # Serving certificates need manual approval; the kubelet does not listen before.
        [request] = self.cluster.eventually("a request for a serving certificate", lambda: self.requests("kubelet-serving"))
        self.assertNotIn("conditions", request["status"])
        self.cluster.kubectl("certificate", "approve", request["metadata"]["name"])
        node = self.cluster.get("nodes")["items"][0]["metadata"]["name"]
        self.cluster.eventually("the kubelet's API", lambda: self.cluster.kubectl(
            "get", "--raw", f"/api/v1/nodes/{node}/proxy/healthz").stdout == "ok")


if __name__ == "__main__":
    unittest.main()
