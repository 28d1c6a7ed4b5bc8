// A real etcd, the real program and the real kubectl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include <boost/json.hpp>

#include "lib/base/file.h"
#include "lib/base/percent.h"
#include "lib/http/server/server.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kDeployment = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: busybox, ports: [{containerPort: 80}]}]
)";

class ApiServer : public ClusterTest {
 protected:
  std::string KubectlError(std::vector<std::string> arguments, const std::string& input = "",
                           const std::string& user = "admin") {
    arguments.insert(arguments.begin(), {"-n", ns_});
    Output output = cluster_->Kubectl(arguments, input, user);
    EXPECT_NE(output.code, 0) << testing::PrintToString(arguments) << "\n" << output.out;
    return output.err;
  }
  struct Answer {
    int status;
    json::value body;
    std::string text;
    http::Headers headers;
    std::string Message() const { return std::string(body.at("message").as_string()); }
    std::string Reason() const { return std::string(body.at("reason").as_string()); }
  };
  Answer Do(const std::string& method, const std::string& target, const std::string& body = "",
            const std::string& type = "application/json", const std::string& accept = "application/json",
            const std::string& user = "admin") {
    http::ClientRequest request;
    request.method = method;
    request.target = target;
    request.headers = {{"Accept", accept}};
    if (!body.empty()) request.headers.Add("Content-Type", type);
    request.body = body;
    http::ClientResponse response = cluster_->Do(request, user);
    boost::system::error_code error;
    return {response.status, json::parse(response.body, error), response.body, response.headers};
  }
  std::string Path(const std::string& rest) { return "/api/v1/namespaces/" + ns_ + "/" + rest; }
};

TEST_F(ApiServer, ApplyChangeAndDelete) {
  EXPECT_EQ(Kubectl({"apply", "-f", "-"}, kDeployment), "deployment.apps/web created\n");
  EXPECT_EQ(Kubectl({"apply", "-f", "-"}, kDeployment), "deployment.apps/web unchanged\n");
  EXPECT_EQ(Kubectl({"get", "deploy", "web", "-o", "jsonpath={.metadata.generation}"}), "1");
  Kubectl({"wait", "--for=jsonpath={.status.updatedReplicas}=2", "deploy/web", "--timeout=30s"});
  EXPECT_THAT(Kubectl({"get", "deploy", "-o", "wide"}), HasSubstr("SELECTOR"));
  EXPECT_THAT(Kubectl({"get", "pods"}), HasSubstr("Pending"));

  Kubectl({"scale", "deploy", "web", "--replicas=3"});
  EXPECT_EQ(Kubectl({"get", "deploy", "web", "-o", "jsonpath={.spec.replicas}"}), "3");
  Kubectl({"patch", "deploy", "web", "-p", R"({"metadata":{"labels":{"x":"y"}}})"});
  Kubectl(
      {"patch", "deploy", "web", "--type=json", "-p", R"([{"op":"remove","path":"/metadata/labels/app"}])"});
  Kubectl({"patch", "deploy", "web", "--type=merge", "-p", R"({"spec":{"minReadySeconds":7}})"});
  EXPECT_EQ(Kubectl({"get", "deploy", "web", "-o", "jsonpath={.metadata.labels} {.spec.minReadySeconds}"}),
            R"({"x":"y"} 7)");
  Kubectl({"set", "image", "deploy/web", "c=nginx"});
  EXPECT_EQ(Kubectl({"get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}"}),
            "nginx");
  EXPECT_THAT(Kubectl({"describe", "deploy", "web"}), HasSubstr("3 desired"));
  Kubectl({"delete", "deploy", "web", "--timeout=30s"});
  EXPECT_THAT(KubectlError({"get", "deploy", "web"}), HasSubstr("deployments.apps \"web\" not found"));
  Kubectl({"wait", "--for=delete", "pods", "--all", "--timeout=30s"});
}

TEST_F(ApiServer, PodsAreCompletedOnTheWayIn) {
  Kubectl({"run", "p", "--image=busybox"});
  auto field = [&](const char* path) {
    return Kubectl({"get", "pod", "p", "-o", std::string("jsonpath=") + path});
  };
  EXPECT_EQ(field("{.spec.serviceAccountName}"), "default");
  EXPECT_EQ(field("{.spec.volumes[0].projected.sources[1].configMap.name}"), "kube-root-ca.crt");
  EXPECT_EQ(field("{.spec.containers[0].volumeMounts[0].mountPath}"),
            "/var/run/secrets/kubernetes.io/serviceaccount");
  EXPECT_EQ(field("{.spec.tolerations[*].key}"),
            "node.kubernetes.io/not-ready node.kubernetes.io/unreachable");
  EXPECT_EQ(field("{.spec.priority} {.spec.preemptionPolicy}"), "0 PreemptLowerPriority");
  EXPECT_EQ(field("{.status.phase} {.status.qosClass}"), "Pending BestEffort");
  EXPECT_THAT(
      KubectlError({"run", "q", "--image=b", "--overrides", R"({"spec":{"priorityClassName":"none"}})"}),
      HasSubstr("no PriorityClass with name none was found"));
  Kubectl(
      {"run", "q", "--image=b", "--overrides", R"({"spec":{"priorityClassName":"system-node-critical"}})"});
  EXPECT_EQ(Kubectl({"get", "pod", "q", "-o", "jsonpath={.spec.priority}"}), "2000001000");
}

TEST_F(ApiServer, WhatKubectlAsksBeforehand) {
  EXPECT_THAT(Kubectl({"api-resources"}), HasSubstr("deployments"));
  EXPECT_THAT(Kubectl({"api-versions"}), HasSubstr("apps/v1\n"));
  EXPECT_THAT(Kubectl({"explain", "pod.spec.containers.livenessProbe"}), HasSubstr("initialDelaySeconds"));
  EXPECT_THAT(Kubectl({"version"}), HasSubstr("Server Version: v1.36."));
  EXPECT_THAT(Kubectl({"get", "componentstatuses"}), HasSubstr("etcd-0"));
  EXPECT_THAT(Kubectl({"get", "endpointslices", "-n", "default"}), HasSubstr("192.0.2.10"));
  Kubectl({"label", "ns", ns_, "a=b"});
  EXPECT_EQ(Kubectl({"get", "ns", "-l", "a=b", "-o", "name"}), "namespace/" + ns_ + "\n");
}

TEST_F(ApiServer, WrongRequestsAreRefusedAndStoreNothing) {
  struct Case {
    const char *what, *method, *path, *type, *body;
    int status;
    const char *reason, *message;
  };
  const std::string big = R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"big"},"data":{"a":")" +
                          std::string(3 << 20, 'x') + "\"}}";
  constexpr const char* kJson = "application/json";
  const Case cases[] = {
      {"malformed", "POST", "configmaps", kJson, R"({"kind":"ConfigMap",)", 400, "BadRequest",
       "the object provided is unrecognized (must be of type ConfigMap)"},
      {"unknown field", "POST", "configmaps?fieldValidation=Strict", kJson,
       R"({"metadata":{"name":"x"},"dta":{}})", 400, "BadRequest",
       "strict decoding error: unknown field \"dta\""},
      {"wrong type", "POST", "services", kJson,
       R"({"metadata":{"name":"x"},"spec":{"ports":[{"port":"http"}]}})", 400, "BadRequest",
       "cannot unmarshal string into Go struct field"},
      {"bad name", "POST", "configmaps", kJson, R"({"metadata":{"name":"A_b"}})", 422, "Invalid",
       "metadata.name: Invalid value: \"A_b\""},
      {"no name", "POST", "configmaps", kJson, R"({"metadata":{}})", 422, "Invalid",
       "name or generateName is required"},
      {"other kind", "POST", "configmaps", kJson, R"({"kind":"Secret","apiVersion":"v1"})", 400, "BadRequest",
       "cannot be handled as a ConfigMap"},
      {"other version", "POST", "configmaps", kJson, R"({"kind":"ConfigMap","apiVersion":"v7"})", 400,
       "BadRequest", "does not match the expected API version (v1)"},
      {"too large", "POST", "configmaps", kJson, big.c_str(), 413, "RequestEntityTooLarge",
       "limit is 3145728"},
      {"media type", "POST", "configmaps", "text/plain", "x", 415, "UnsupportedMediaType", "unknown format"},
      {"patch type", "PATCH", "configmaps/kube-root-ca.crt", kJson, "{}", 415, "UnsupportedMediaType",
       "application/merge-patch+json"},
      {"unknown resource", "POST", "foos", kJson, "{}", 404, "NotFound",
       "the server could not find the requested resource"},
      {"method", "PUT", "configmaps", kJson, "{}", 405, "MethodNotAllowed", "does not allow this method"},
      {"selector", "GET", "configmaps?labelSelector=a%3D%3D%3Db", kJson, "", 400, "BadRequest",
       "unable to parse"},
      {"field", "GET", "pods?fieldSelector=spec.foo%3Db", kJson, "", 400, "BadRequest",
       "field label not supported: spec.foo"},
      {"limit", "GET", "pods?limit=many", kJson, "", 400, "BadRequest", "invalid syntax"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Answer answer = Do(c.method, Path(c.path), c.body, c.type);
    EXPECT_EQ(answer.status, c.status) << answer.text;
    if (!answer.body.is_object()) continue;
    EXPECT_EQ(answer.body.at("kind").as_string(), "Status");
    EXPECT_EQ(answer.body.at("code").to_number<int>(), c.status);
    EXPECT_EQ(answer.Reason(), c.reason);
    EXPECT_THAT(answer.Message(), HasSubstr(c.message));
  }
  EXPECT_EQ(Kubectl({"get", "cm,svc", "-o", "name"}), "configmap/kube-root-ca.crt\n");
  EXPECT_EQ(Do("GET", Path("pods"), "", "", "text/html").status, 406);
}

TEST_F(ApiServer, ConflictsAndDryRuns) {
  Kubectl({"create", "cm", "c", "--from-literal=a=b"});
  Answer read = Do("GET", Path("configmaps/c"));
  json::object object = read.body.as_object();
  object["data"] = {{"a", "c"}};
  EXPECT_EQ(Do("PUT", Path("configmaps/c"), json::serialize(object)).status, 200);
  Answer stale = Do("PUT", Path("configmaps/c"), json::serialize(object));
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(stale.Reason(), "Conflict");
  EXPECT_THAT(stale.Message(), HasSubstr("the object has been modified"));
  EXPECT_THAT(KubectlError({"create", "cm", "c"}), HasSubstr("configmaps \"c\" already exists"));
  Answer dry = Do("POST", Path("configmaps?dryRun=All"), R"({"metadata":{"name":"dry"},"extra":1})");
  EXPECT_EQ(dry.status, 201);
  EXPECT_EQ(dry.headers.Get("Warning"), "299 - \"unknown field \\\"extra\\\"\"");
  EXPECT_EQ(Do("GET", Path("configmaps/dry")).status, 404);
  Answer yaml =
      Do("POST", Path("configmaps"), "metadata: {name: y}\ndata: {on: 'yes'}\n", "application/yaml");
  EXPECT_EQ(yaml.status, 201) << yaml.text;
  Answer gone = Do("DELETE", Path("configmaps/y"));
  EXPECT_EQ(gone.body.at("status").as_string(), "Success");
  EXPECT_EQ(gone.body.at("details").at("kind").as_string(), "configmaps");
}

TEST_F(ApiServer, FormsOfAReply) {
  Kubectl({"create", "cm", "c", "--from-literal=a=b"});
  Answer table = Do("GET", Path("configmaps"), "", "", "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_EQ(table.body.at("kind").as_string(), "Table");
  EXPECT_EQ(table.body.at("columnDefinitions").at(0).at("name").as_string(), "Name");
  EXPECT_EQ(table.body.at("rows").as_array().size(), 2u);
  EXPECT_EQ(table.body.at("rows").at(0).at("object").at("kind").as_string(), "PartialObjectMetadata");
  Answer partial = Do("GET", Path("configmaps"), "", "",
                      "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
  EXPECT_EQ(partial.body.at("kind").as_string(), "PartialObjectMetadataList");
  EXPECT_THAT(partial.text, Not(HasSubstr("\"data\"")));
  Answer protobuf = Do("GET", Path("configmaps/c"), "", "", "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(protobuf.text.substr(0, 4), std::string("k8s\0", 4));
  EXPECT_EQ(protobuf.headers.Get("Content-Type"), "application/vnd.kubernetes.protobuf");
  Answer page = Do("GET", Path("configmaps?limit=1"));
  EXPECT_EQ(page.body.at("items").as_array().size(), 1u);
  std::string token(page.body.at("metadata").at("continue").as_string());
  Answer next = Do("GET", Path("configmaps?limit=1&continue=" + PercentEncode(token)));
  EXPECT_EQ(next.body.at("items").at(0).at("metadata").at("name").as_string(), "kube-root-ca.crt");
  Answer aggregated =
      Do("GET", "/apis", "", "", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  EXPECT_EQ(aggregated.body.at("kind").as_string(), "APIGroupDiscoveryList");
  EXPECT_FALSE(aggregated.headers.Get("ETag").empty());
}

TEST_F(ApiServer, Watch) {
  Answer list = Do("GET", Path("configmaps"));
  std::string revision(list.body.at("metadata").at("resourceVersion").as_string());
  Kubectl({"create", "cm", "c", "--from-literal=a=b"});
  Kubectl({"label", "cm", "c", "x=y"});
  Kubectl({"delete", "cm", "c"});
  std::string watch = Path("configmaps?watch=true&timeoutSeconds=1&resourceVersion=" + revision);
  std::vector<std::string> types;
  std::string text = Do("GET", watch).text;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    types.emplace_back(json::parse(text.substr(at, end - at)).at("type").as_string());
    at = end + 1;
  }
  EXPECT_EQ(types, (std::vector<std::string>{"ADDED", "MODIFIED", "DELETED"}));
  std::string labelled = Do("GET", watch + "&labelSelector=x%3Dy").text;
  EXPECT_THAT(labelled, HasSubstr("\"type\":\"ADDED\""));
  EXPECT_THAT(labelled, Not(HasSubstr("MODIFIED")));
  std::string table = Do("GET", watch, "", "", "application/json;as=Table;v=v1;g=meta.k8s.io").text;
  EXPECT_THAT(table, HasSubstr("\"kind\":\"Table\""));
  std::string frames = Do("GET", watch, "", "", "application/vnd.kubernetes.protobuf").text;
  EXPECT_EQ(frames.substr(4, 7),
            "\n\x05"
            "ADDED");  // a WatchEvent without envelope, as client-go has it
}

TEST_F(ApiServer, WhoMayDoWhat) {
  cluster_->AddUser("alice", {"dev"});
  cluster_->AddUser("system:node:n1", {"system:nodes"});
  EXPECT_THAT(
      KubectlError({"get", "pods"}, "", "alice"),
      HasSubstr("pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" in the "
                "namespace \"" +
                ns_ + "\""));
  Kubectl({"create", "rolebinding", "r", "--clusterrole=edit", "--group=dev"});
  Kubectl({"wait", "--for=create", "rolebinding/r", "--timeout=10s"});
  EXPECT_EQ(Kubectl({"auth", "can-i", "create", "pods", "--as=alice", "--as-group=dev"}), "yes\n");
  EXPECT_EQ(cluster_->Kubectl({"-n", ns_, "create", "cm", "mine"}, "", "alice").code, 0);
  EXPECT_THAT(KubectlError({"create", "rolebinding", "up", "--clusterrole=cluster-admin", "--user=alice"}, "",
                           "alice"),
              HasSubstr("forbidden"));
  EXPECT_THAT(KubectlError({"get", "pods", "--as=bob"}, "", "alice"), HasSubstr("cannot impersonate"));

  Kubectl({"create", "rolebinding", "adm", "--clusterrole=admin", "--user=carol"});
  EXPECT_THAT(KubectlError({"create", "rolebinding", "up", "--clusterrole=cluster-admin", "--user=carol",
                            "--as=carol"}),
              HasSubstr("attempting to grant RBAC permissions not currently held"));

  EXPECT_EQ(Do("GET", "/version", "", "", "*/*", "").status, 200);
  EXPECT_EQ(Do("GET", "/api/v1/pods", "", "", "*/*", "").status, 403);
  constexpr const char* kNode = R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"%s"}})";
  auto node = [&](const char* name) {
    std::string body = kNode;
    body.replace(body.find("%s"), 2, name);
    return Do("POST", "/api/v1/nodes", body, "application/json", "application/json", "system:node:n1");
  };
  EXPECT_EQ(node("n1").status, 201);
  EXPECT_EQ(node("n2").status, 403);
  EXPECT_EQ(Do("GET", "/api/v1/secrets", "", "", "*/*", "system:node:n1").status, 403);
}

TEST_F(ApiServer, Tokens) {
  std::string token = Kubectl({"create", "token", "default", "--duration=20m"});
  while (!token.empty() && token.back() == '\n') token.pop_back();
  http::ClientRequest request;
  request.method = "POST";
  request.target = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  request.headers = {{"Authorization", "Bearer " + token}, {"Content-Type", "application/json"}};
  request.body = "{}";
  http::ClientResponse self = cluster_->Do(request, "");
  ASSERT_EQ(self.status, 201) << self.body;
  EXPECT_EQ(json::parse(self.body).at("status").at("userInfo").at("username").as_string(),
            "system:serviceaccount:" + ns_ + ":default");
  Answer review = Do(
      "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
      R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":")" + token + "\"}}");
  EXPECT_TRUE(review.body.at("status").at("authenticated").as_bool());
  EXPECT_THAT(KubectlError({"create", "token", "default", "--duration=1m"}),
              HasSubstr("may not specify a duration less than 10 minutes"));
  EXPECT_THAT(KubectlError({"create", "token", "nobody"}), HasSubstr("serviceaccounts \"nobody\" not found"));

  // A token bound to a pod ends with the pod.
  Kubectl({"run", "p", "--image=busybox"});
  token = Kubectl({"create", "token", "default", "--bound-object-kind=Pod", "--bound-object-name=p"});
  while (!token.empty() && token.back() == '\n') token.pop_back();
  request.headers.Set("Authorization", "Bearer " + token);
  EXPECT_EQ(cluster_->Do(request, "").status, 201);
  Kubectl({"delete", "pod", "p", "--grace-period=0", "--force"});
  EXPECT_EQ(cluster_->Do(request, "").status, 401);
  Answer keys = Do("GET", "/openid/v1/jwks");
  EXPECT_EQ(keys.body.at("keys").at(0).at("alg").as_string(), "RS256");
}

TEST_F(ApiServer, BindingAndEviction) {
  Kubectl({"run", "p", "--image=busybox"});
  Answer bound = Do("POST", Path("pods/p/binding"),
                    R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"somewhere"}})");
  EXPECT_EQ(bound.status, 201) << bound.text;
  EXPECT_EQ(bound.body.at("status").as_string(), "Success");
  EXPECT_EQ(Kubectl({"get", "pod", "p", "-o", "jsonpath={.spec.nodeName}"}), "somewhere");
  EXPECT_EQ(
      Do("POST", Path("pods/p/binding"), R"({"metadata":{"name":"p"},"target":{"name":"elsewhere"}})").status,
      409);
  // Without a kubelet the connect subresources fail with a clear message.
  Answer log = Do("GET", Path("pods/p/log"));
  EXPECT_EQ(log.status, 404);
  EXPECT_THAT(log.text, HasSubstr("nodes \\\"somewhere\\\" not found"));
  EXPECT_EQ(Do("GET", Path("pods/p/log?container=none")).status, 400);
  EXPECT_EQ(Do("POST", Path("pods/p/exec?command=ls&stdout=1")).status, 400);
}

// A fake kubelet that reports its requests, and echoes data on upgraded connections.
class EchoKubelet {
 public:
  explicit EchoKubelet(const crypto::TestPki& pki) {
    http::ServerOptions options;
    options.tls.emplace();
    options.tls->certificate_file = pki.server_cert_file();
    options.tls->key_file = pki.server_key_file();
    options.tls->client_ca_file = pki.ca_file();
    auto listening = http::Server::Listen(std::move(options), Serve);
    if (!listening) abort();
    server_ = std::move(*listening);
    thread_ = std::jthread([this](std::stop_token stop) { (void)server_->Run(stop); });
  }
  int port() const { return server_->port(); }

 private:
  static void Serve(std::shared_ptr<const http::ServerRequest> request,
                    std::shared_ptr<http::ResponseWriter> writer) {
    std::string who = request->peer ? request->peer->common_name : "nobody";
    if (request->path == "/page") {
      return writer->Reply(
          200, {{"Content-Type", "text/html; charset=utf-8"}, {"Access-Control-Allow-Origin", "*"}},
          "<a href=\"/rewriteme\">test</a>");
    }
    if (request->path == "/moved") return writer->Reply(302, {{"Location", "/there"}}, "");
    if (request->headers.Get("Upgrade").empty()) {
      writer->Reply(request->path == "/teapot" ? 418 : 200, {{"Content-Type", "text/plain"}},
                    who + " " + request->method + " " + request->raw_path + "?" + request->raw_query + " " +
                        request->body);
      return;
    }
    auto stream = writer->Upgrade({{"Connection", "Upgrade"}, {"Upgrade", "echo"}});
    if (stream) Echo(std::move(*stream), who + " " + request->raw_path + "?" + request->raw_query + "\n");
  }
  static void Echo(std::shared_ptr<http::Stream> stream, std::string text) {
    stream->AsyncWrite(std::move(text), [stream](Result<> written) {
      if (!written) return;
      stream->AsyncRead([stream](Result<std::string> read) {
        if (read && !read->empty()) Echo(stream, std::move(*read));
      });
    });
  }

  std::unique_ptr<http::Server> server_;
  std::jthread thread_;
};

std::string ReadUntil(http::Stream& stream, const std::string& end) {
  std::string text;
  while (text.find(end) == std::string::npos) {
    std::promise<Result<std::string>> promise;
    stream.AsyncRead([&](Result<std::string> read) { promise.set_value(std::move(read)); });
    Result<std::string> piece = promise.get_future().get();
    if (!piece || piece->empty()) break;
    text += *piece;
  }
  return text;
}

TEST_F(ApiServer, WhatLeadsToTheKubelet) {
  EchoKubelet kubelet(cluster_->pki());
  std::string node = "kubelet-" + ns_;
  ASSERT_EQ(Do("POST", "/api/v1/nodes", R"({"metadata":{"name":")" + node + "\"}}").status, 201);
  std::string status = R"({"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],)"
                       R"("daemonEndpoints":{"kubeletEndpoint":{"Port":)" +
                       std::to_string(kubelet.port()) + "}}}}";
  ASSERT_EQ(Do("PATCH", "/api/v1/nodes/" + node + "/status", status, "application/merge-patch+json").status,
            200);
  Kubectl({"run", "p", "--image=busybox"});
  ASSERT_EQ(
      Do("POST", Path("pods/p/binding"), R"({"metadata":{"name":"p"},"target":{"name":")" + node + "\"}}")
          .status,
      201);

  const std::string me = "kube-apiserver-kubelet-client";
  EXPECT_EQ(Kubectl({"logs", "p", "--tail=5", "-f"}),
            me + " GET /containerLogs/" + ns_ + "/p/p?follow=true&tailLines=5 ");
  std::string proxy = "/api/v1/nodes/" + node + "/proxy";
  EXPECT_EQ(Do("POST", proxy + "/a%2Fb?x=1", "body", "text/plain").text, me + " POST /a%2Fb?x=1 body");
  for (const char* method : {"PUT", "DELETE", "OPTIONS"}) {
    EXPECT_EQ(Do(method, proxy).text, me + " " + method + " /? ");
  }
  Answer below = Do("GET", proxy + "?a=b");
  EXPECT_EQ(below.status, 301);
  EXPECT_EQ(below.headers.Get("Location"), proxy + "/?a=b");
  EXPECT_EQ(Do("GET", proxy + "/").text, me + " GET /? ");
  Answer page = Do("GET", proxy + "/page");
  EXPECT_EQ(page.text, "<a href=\"" + proxy + "/rewriteme\">test</a>");
  EXPECT_FALSE(page.headers.Has("Access-Control-Allow-Origin"));
  EXPECT_EQ(Do("GET", proxy + "/moved").headers.Get("Location"), proxy + "/there");
  Answer teapot = Do("GET", proxy + "/teapot");
  EXPECT_EQ(teapot.status, 418);
  EXPECT_EQ(teapot.headers.All("Audit-Id").size(), 1u);
  EXPECT_EQ(below.headers.All("Audit-Id").size(), 1u);
  EXPECT_EQ(Do("GET", Path("pods/p/log")).headers.All("Audit-Id").size(), 1u);

  http::ClientOptions options;
  options.base_url = cluster_->url();
  options.tls.ca_pem = cluster_->pki().ca_pem();
  crypto::TestCertificate admin = cluster_->pki().Client("admin", {"system:masters"});
  options.tls.certificate_pem = admin.certificate_pem;
  options.tls.key_pem = admin.key_pem;
  auto client = http::Client::Create(std::move(options));
  http::ClientRequest request;
  request.method = "POST";
  request.target =
      Path("pods/p/exec?command=sh&command=-c&stdin=true&stdout=1&stderr=0&tty=true&container=p");
  request.headers = {{"Connection", "Upgrade"}, {"Upgrade", "echo"}};
  auto upgraded = (*client)->Upgrade(request, std::chrono::seconds(10));
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  EXPECT_EQ(ReadUntil(*upgraded->stream, "\n"),
            me + " /exec/" + ns_ + "/p/p?command=sh&command=-c&input=1&output=1&tty=1\n");
  upgraded->stream->AsyncWrite("ping\n", [](Result<>) {});
  EXPECT_EQ(ReadUntil(*upgraded->stream, "\n"), "ping\n");

  request.method = "GET";
  request.target = Path("pods/p/log?tailLines=3");
  request.headers = {{"Connection", "Upgrade"},
                     {"Upgrade", "websocket"},
                     {"Sec-WebSocket-Version", "13"},
                     {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                     {"Sec-WebSocket-Protocol", "binary.k8s.io"}};
  upgraded = (*client)->Upgrade(request, std::chrono::seconds(10));
  ASSERT_TRUE(upgraded) << upgraded.error().message();
  EXPECT_EQ(upgraded->headers.Get("Sec-WebSocket-Protocol"), "binary.k8s.io");
  std::string log = me + " GET /containerLogs/" + ns_ + "/p/p?tailLines=3 ";
  EXPECT_THAT(ReadUntil(*upgraded->stream, log), HasSubstr(log));
  Kubectl({"delete", "node", node});
}

TEST_F(ApiServer, HealthAndMetrics) {
  EXPECT_THAT(Do("GET", "/readyz?verbose", "", "", "*/*", "").text, HasSubstr("[+]etcd ok\n"));
  EXPECT_EQ(Do("GET", "/livez", "", "", "*/*", "").text, "ok");
  EXPECT_EQ(Do("GET", "/healthz/ping", "", "", "*/*", "").text, "ok");
  EXPECT_EQ(Do("GET", "/healthz/none", "", "", "*/*", "").status, 404);
  std::string metrics = Do("GET", "/metrics", "", "", "*/*").text;
  EXPECT_THAT(metrics, HasSubstr("apiserver_request_total{verb=\"POST\""));
  EXPECT_THAT(metrics, HasSubstr("apiserver_request_duration_seconds_bucket"));
  EXPECT_THAT(metrics, HasSubstr("apiserver_storage_objects{resource=\"namespaces\"}"));
}

}  // namespace
}  // namespace keelson::apiserver
