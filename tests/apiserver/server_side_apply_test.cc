// Server-side apply through the real program, with the real kubectl and over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "lib/base/file.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kApply = "application/apply-patch+yaml";

std::string Deployment(int replicas, const std::string& image = "busybox") {
  return fmt::format(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, labels: {{app: web}}}}
spec:
  replicas: {}
  paused: true
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: c, image: {}, ports: [{{containerPort: 80}}]}}]
)",
                     replicas, image);
}

std::string ConfigMap(const std::string& data) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: " + data + "\n";
}

class ServerSideApply : public ClusterTest {
 protected:
  // "manager operation[/subresource]" of a resource, in order.
  std::vector<std::string> Managers(const std::string& resource) {
    json::value object = json::parse(Kubectl({"get", resource, "-o", "json", "--show-managed-fields"}));
    std::vector<std::string> out;
    const json::value* managed = object.at("metadata").as_object().if_contains("managedFields");
    if (!managed) return out;
    for (const auto& entry : managed->as_array()) {
      std::string line =
          std::string(entry.at("manager").as_string()) + " " + std::string(entry.at("operation").as_string());
      const auto* subresource = entry.as_object().if_contains("subresource");
      if (subresource) line += "/" + std::string(subresource->as_string());
      out.push_back(line);
    }
    return out;
  }
  std::string Fields(const std::string& resource, const std::string& manager) {
    json::value object = json::parse(Kubectl({"get", resource, "-o", "json", "--show-managed-fields"}));
    for (const auto& entry : object.at("metadata").at("managedFields").as_array()) {
      if (entry.at("manager").as_string() == manager) return json::serialize(entry.at("fieldsV1"));
    }
    return "";
  }
  std::string VersionOf(const std::string& resource) {
    return Kubectl({"get", resource, "-o", "jsonpath={.metadata.resourceVersion}"});
  }

  struct Answer {
    int status;
    json::value body;
    http::Headers headers;
    std::string Message() const { return std::string(body.at("message").as_string()); }
  };
  Answer Do(const std::string& method, const std::string& path, const std::string& body,
            const std::string& type = kApply, const std::string& user = "admin") {
    http::ClientRequest request;
    request.method = method;
    request.target = path;
    request.headers = {{"Accept", "application/json"}, {"Content-Type", type}, {"User-Agent", "tester/1.0"}};
    request.body = body;
    http::ClientResponse response = cluster_->Do(request, user);
    return {response.status, json::parse(response.body), response.headers};
  }
  std::string MapPath(const std::string& query = "") {
    return "/api/v1/namespaces/" + ns_ + "/configmaps/m" + query;
  }
};

using Lines = std::vector<std::string>;

TEST_F(ServerSideApply, KubectlAppliesAndSeesConflicts) {
  EXPECT_THAT(Kubectl({"apply", "--server-side", "-f", "-"}, Deployment(1)), HasSubstr("serverside-applied"));
  EXPECT_EQ(Managers("deployment/web")[0], "kubectl Apply");
  EXPECT_EQ(
      Fields("deployment/web", "kubectl"),
      R"({"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:paused":{},"f:replicas":{},"f:selector":{},)"
      R"("f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{)"
      R"("k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{)"
      R"("k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}})");
  // The same again writes nothing.
  std::string version = VersionOf("deployment/web");
  Kubectl({"apply", "--server-side", "-f", "-"}, Deployment(1));
  EXPECT_EQ(VersionOf("deployment/web"), version);
  Output conflict =
      Run({"apply", "--server-side", "--field-manager", "other", "-f", "-"}, Deployment(3, "alpine"));
  EXPECT_NE(conflict.code, 0);
  EXPECT_THAT(conflict.err, HasSubstr("Apply failed with 2 conflicts: conflicts with \"kubectl\":"));
  EXPECT_THAT(conflict.err, HasSubstr("- .spec.replicas"));
  EXPECT_THAT(conflict.err, HasSubstr("- .spec.template.spec.containers[name=\"c\"].image"));
  Kubectl({"apply", "--server-side", "--field-manager", "other", "--force-conflicts", "-f", "-"},
          Deployment(3, "alpine"));
  EXPECT_EQ(Kubectl({"get", "deployment/web", "-o", "jsonpath={.spec.replicas}"}), "3");
  EXPECT_THAT(Fields("deployment/web", "kubectl"), Not(HasSubstr("f:replicas")));
}

TEST_F(ServerSideApply, KubectlDiffs) {
  Kubectl({"apply", "--server-side", "-f", "-"}, Deployment(1));
  EXPECT_EQ(Run({"diff", "--server-side", "-f", "-"}, Deployment(1)).code, 0);
  Output diff = Run({"diff", "--server-side", "-f", "-"}, Deployment(2));
  EXPECT_EQ(diff.code, 1) << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("-  replicas: 1"));
  EXPECT_THAT(diff.out, HasSubstr("+  replicas: 2"));
  EXPECT_EQ(Kubectl({"get", "deployment/web", "-o", "jsonpath={.spec.replicas}"}), "1");
}

TEST_F(ServerSideApply, FromClientSideApplyAndBack) {
  Kubectl({"apply", "-f", "-"}, ConfigMap("{a: '1', b: '1'}"));
  EXPECT_EQ(Managers("cm/m"), Lines{"kubectl-client-side-apply Update"});
  Kubectl({"apply", "--server-side", "-f", "-"}, ConfigMap("{a: '2', b: '1'}"));
  EXPECT_THAT(Managers("cm/m"), testing::Contains("kubectl Apply"));
  EXPECT_THAT(Kubectl({"get", "cm/m", "-o", "jsonpath={.metadata.annotations}"}),
              HasSubstr(R"(\"a\":\"2\")"));
  // Fields that client-side apply set and the configuration dropped are removed.
  Kubectl({"apply", "--server-side", "-f", "-"}, ConfigMap("{a: '2'}"));
  EXPECT_EQ(Kubectl({"get", "cm/m", "-o", "jsonpath={.data}"}), R"({"a":"2"})");
  Kubectl({"apply", "-f", "-"}, ConfigMap("{a: '3', c: '1'}"));
  EXPECT_EQ(Kubectl({"get", "cm/m", "-o", "jsonpath={.data}"}), R"({"a":"3","c":"1"})");
}

TEST_F(ServerSideApply, Statuses) {
  const std::string config = ConfigMap("{a: '1'}");
  EXPECT_EQ(
      Do("PATCH", MapPath(), config).Message(),
      "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch");
  EXPECT_EQ(
      Do("PATCH", MapPath("?fieldManager=x&force=true"), "{}", "application/merge-patch+json").Message(),
      "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch");
  Answer dry = Do("PATCH", MapPath("?fieldManager=x&dryRun=All"), config);
  EXPECT_EQ(dry.status, 201);
  EXPECT_EQ(dry.body.at("data").at("a").as_string(), "1");
  EXPECT_EQ(Do("PATCH", MapPath("?fieldManager=x"), config).status, 201);
  EXPECT_EQ(Do("PATCH", MapPath("?fieldManager=x"), config).status, 200);
  Answer conflict = Do("PATCH", MapPath("?fieldManager=y"), ConfigMap("{a: '2'}"));
  EXPECT_EQ(conflict.status, 409);
  EXPECT_EQ(
      json::serialize(conflict.body.at("details")),
      R"({"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"x\"","field":".data.a"}]})");
  EXPECT_EQ(conflict.Message(), "Apply failed with 1 conflict: conflict with \"x\": .data.a");
  EXPECT_EQ(conflict.body.at("reason").as_string(), "Conflict");
  EXPECT_EQ(Do("PATCH", MapPath("?fieldManager=x"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: n}}")
                .Message(),
            "the name of the object (n) does not match the name on the URL (m)");
  EXPECT_EQ(Do("PATCH", MapPath("?fieldManager=x"), "[1]").Message(),
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array "
            "into Go "
            "value of type map[string]interface {}");
  EXPECT_EQ(Do("PATCH", MapPath("?fieldManager=x"), "# nothing").Message(), "invalid object type: /, Kind=");
  EXPECT_EQ(Do("PATCH", MapPath("?fieldManager=x"), "{apiVersion: v1, kind: Secret}").Message(),
            "invalid object type: /v1, Kind=Secret");
  Answer unknown = Do("PATCH", MapPath("?fieldManager=x"), "{apiVersion: v1, kind: ConfigMap, foo: 1}");
  EXPECT_EQ(unknown.status, 500);
  EXPECT_EQ(unknown.Message(),
            "failed to create typed patch object (/; /v1, Kind=ConfigMap): .foo: field not "
            "declared in schema");
  Answer stale =
      Do("PATCH", MapPath("?fieldManager=x"),
         "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, resourceVersion: '1'}, data: {a: '1'}}");
  EXPECT_EQ(stale.status, 409);
  EXPECT_THAT(stale.Message(), HasSubstr("the object has been modified"));
}

TEST_F(ServerSideApply, KeysGivenTwice) {
  const std::string twice =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: '1'\n  a: '2'\n";
  Answer strict = Do("PATCH", MapPath("?fieldManager=x&fieldValidation=Strict"), twice);
  EXPECT_EQ(strict.status, 400);
  EXPECT_EQ(strict.Message(),
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
            "  line 6: key \"a\" already set in map");
  Answer warned = Do("PATCH", MapPath("?fieldManager=x"), twice);
  EXPECT_EQ(warned.status, 201);
  EXPECT_EQ(std::string(warned.headers.Get("Warning")), R"(299 - "line 6: key \"a\" already set in map")");
}

TEST_F(ServerSideApply, CreatingNeedsLeave) {
  cluster_->AddUser("patcher", {});
  Kubectl({"create", "role", "patch", "--verb=patch", "--resource=configmaps"});
  Kubectl({"create", "rolebinding", "patch", "--role=patch", "--user=patcher"});
  Answer answer = Do("PATCH", MapPath("?fieldManager=x"), ConfigMap("{a: '1'}"), kApply, "patcher");
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(answer.Message(), HasSubstr("cannot create resource \"configmaps\""));
  EXPECT_EQ(Do("PATCH", MapPath("?fieldManager=x"), ConfigMap("{a: '1'}")).status, 201);
  EXPECT_EQ(Do("PATCH", MapPath("?fieldManager=x"), ConfigMap("{a: '2'}"), kApply, "patcher").status, 200);
}

TEST_F(ServerSideApply, ManagedFieldsOfEveryWrite) {
  Kubectl({"create", "cm", "m", "--from-literal=a=1"});
  EXPECT_EQ(Managers("cm/m"), Lines{"kubectl-create Update"});
  EXPECT_EQ(Fields("cm/m", "kubectl-create"), R"({"f:data":{".":{},"f:a":{}}})");
  Kubectl({"label", "cm", "m", "x=y"});
  EXPECT_EQ(Managers("cm/m"), (Lines{"kubectl-create Update", "kubectl-label Update"}));
  Do("PATCH", MapPath(), R"({"data":{"b":"1"}})", "application/merge-patch+json");
  EXPECT_EQ(Fields("cm/m", "tester"), R"({"f:data":{"f:b":{}}})");
  // kubectl leaves managed fields out unless it is asked.
  EXPECT_THAT(Kubectl({"get", "cm/m", "-o", "yaml"}), Not(HasSubstr("managedFields")));
  std::string version = VersionOf("cm/m");
  Do("PATCH", MapPath("?fieldManager=z"), R"({"data":{"b":"1"}})", "application/merge-patch+json");
  EXPECT_EQ(VersionOf("cm/m"), version);
  // Forgotten on demand, by a list of one empty entry or of none.
  Do("PATCH", MapPath(), R"({"metadata":{"managedFields":[{}]}})", "application/merge-patch+json");
  EXPECT_EQ(Managers("cm/m"), Lines{});
  Do("PATCH", MapPath("?fieldManager=late"), ConfigMap("{c: '1'}"));
  EXPECT_EQ(Managers("cm/m"), (Lines{"late Apply", "before-first-apply Update"}));
  json::value object = json::parse(Kubectl({"get", "cm/m", "-o", "json", "--show-managed-fields"}));
  object.at("metadata").as_object()["managedFields"] = json::array();
  Do("PUT", MapPath(), json::serialize(object), "application/json");
  EXPECT_EQ(Managers("cm/m"), Lines{});
}

TEST_F(ServerSideApply, Subresources) {
  Kubectl({"apply", "--server-side", "-f", "-"}, Deployment(1));
  Kubectl({"scale", "deployment/web", "--replicas=2"});
  EXPECT_THAT(Managers("deployment/web"), testing::Contains("kubectl Update/scale"));
  EXPECT_THAT(Fields("deployment/web", "kubectl"), Not(HasSubstr("f:replicas")));
  const std::string path = "/apis/apps/v1/namespaces/" + ns_ + "/deployments/web";
  // Applying replicas to the scale conflicts with applying them to the Deployment, and vice versa.
  const std::string scale =
      "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web}, spec: {replicas: 5}}";
  Answer conflict = Do("PATCH", path + "/scale?fieldManager=scaler", scale);
  EXPECT_EQ(conflict.Message(),
            "Apply failed with 1 conflict: conflict with \"kubectl\" with subresource \"scale\" using "
            "autoscaling/v1: .spec.replicas");
  EXPECT_EQ(Do("PATCH", path + "/scale?fieldManager=scaler&force=true", scale).status, 200);
  EXPECT_EQ(Fields("deployment/web", "scaler"), R"({"f:spec":{"f:replicas":{}}})");
  Output output = Run({"apply", "--server-side", "-f", "-"}, Deployment(3));
  EXPECT_THAT(output.err, HasSubstr("conflict with \"scaler\" with subresource \"scale\": .spec.replicas"));
  Answer status = Do("PATCH", path + "/status?fieldManager=judge",
                     "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 9}, "
                     "status: {conditions: [{type: Odd, status: 'True', lastUpdateTime: null}]}}");
  EXPECT_EQ(status.status, 200) << json::serialize(status.body);
  EXPECT_EQ(status.body.at("spec").at("replicas").as_int64(), 5);
  EXPECT_THAT(Managers("deployment/web"), testing::Contains("judge Apply/status"));
  EXPECT_THAT(Fields("deployment/web", "judge"), Not(HasSubstr("f:spec")));
  Answer missing = Do("PATCH", "/apis/apps/v1/namespaces/" + ns_ + "/deployments/none/status?fieldManager=x",
                      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: none}}");
  EXPECT_EQ(missing.status, 404);
}

TEST_F(ServerSideApply, ProgramsInTheProcessHaveNames) {
  Kubectl({"create", "deployment", "web", "--image=busybox"});
  Kubectl({"wait", "deployment/web", "--for=jsonpath={.status.replicas}=1", "--timeout=30s"});
  EXPECT_THAT(Managers("deployment/web"), testing::Contains("kube-controller-manager Update/status"));
}

}  // namespace
}  // namespace keelson::apiserver
