#include "controlplane/controllers/podautoscaler/metrics_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/common/kind_resources.h"
#include "controlplane/controllers/common/scale_client.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/metrics_v1beta1.pb.h"
#include "lib/base/mutex.h"

namespace keelson::controllers::podautoscaler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Answers by a table of "METHOD target"; all else is not found.
class TableApi : public client::Transport {
 public:
  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds,
                                 std::stop_token) override {
    const std::string line = request.method + " " + request.target;
    MutexLock lock(mutex_);
    asked.push_back(line);
    bodies.push_back(request.body);
    auto found = answers.find(line);
    if (found != answers.end()) return client::ApiResponse{200, "application/json", found->second};
    Error error(Code::kNotFound, "the server could not find the requested resource");
    const bool json = request.accept == "application/json";
    metav1::Status status = api::ToStatus(refusal ? *refusal : error);
    return client::ApiResponse{status.code(), json ? request.accept : "application/vnd.kubernetes.protobuf",
                               json ? api::EncodeJson(status, {"", "v1", "Status"})
                                    : api::EncodeProtobuf(status, {"", "v1", "Status"})};
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest&, std::stop_token) override {
    return Error(Code::kUnimplemented, "no streams here");
  }

  std::map<std::string, std::string> answers;
  std::optional<Error> refusal;
  Mutex mutex_;
  std::vector<std::string> asked, bodies;
};

struct MetricsTest : testing::Test {
  void ServeCustom(const std::string& version) {
    api->answers["GET /apis/custom.metrics.k8s.io"] =
        R"({"kind":"APIGroup","name":"custom.metrics.k8s.io","versions":[{"groupVersion":"g","version":")" +
        version + R"("}]})";
  }
  std::shared_ptr<TableApi> api = std::make_shared<TableApi>();
  client::RestClient client{api};
  std::unique_ptr<MetricsClient> metrics = NewMetricsClient(client);
};

std::map<std::string, int64_t> MilliOf(const Result<PodValues>& values) {
  std::map<std::string, int64_t> out;
  if (!values) {
    out[values.error().message()] = -1;
    return out;
  }
  for (const auto& [name, value] : *values) out[name] = value.milli;
  return out;
}

TEST_F(MetricsTest, Resources) {
  api::metrics::v1beta1::PodMetricsList list;
  ASSERT_TRUE(api::DecodeJson(R"({"items":[
      {"metadata":{"name":"a","namespace":"ns"},"timestamp":"2026-01-01T00:00:00Z","window":"15s","containers":[
        {"name":"main","usage":{"cpu":"250m","memory":"1Mi"}},{"name":"side","usage":{"cpu":"100500u","memory":"1Ki"}}]},
      {"metadata":{"name":"b","namespace":"ns"},"timestamp":"2026-01-01T00:00:00Z","window":"15s","containers":[
        {"name":"main","usage":{"memory":"2Mi"}}]},
      {"metadata":{"name":"c","namespace":"ns"},"timestamp":"2026-01-01T00:00:00Z","window":"15s"}]})",
                              list));
  const std::string target = "GET /apis/metrics.k8s.io/v1beta1/namespaces/ns/pods?labelSelector=app%3Dweb";
  api->answers[target] = api::EncodeProtobuf(list, {"metrics.k8s.io", "v1beta1", "PodMetricsList"});
  Result<PodValues> cpu = metrics->OfResource("cpu", "ns", "app=web", "");
  // 350.5m, rounded up. Of b and c nothing is known.
  EXPECT_THAT(MilliOf(cpu), ElementsAre(Pair("a", 351)));
  EXPECT_EQ(cpu->at("a").window, std::chrono::seconds(15));
  EXPECT_EQ(cpu->at("a").time, WallTime(std::chrono::seconds(1767225600)));
  EXPECT_THAT(MilliOf(metrics->OfResource("memory", "ns", "app=web", "")),
              ElementsAre(Pair("a", (1048576 + 1024) * 1000LL), Pair("b", 2097152000LL)));
  EXPECT_THAT(
      MilliOf(metrics->OfResource("cpu", "ns", "app=web", "side")),
      ElementsAre(
          Pair("failed to get container metrics: container side not present in metrics for pod ns/b", -1)));
  list.mutable_items()->DeleteSubrange(1, 2);
  api->answers[target] = api::EncodeProtobuf(list, {"metrics.k8s.io", "v1beta1", "PodMetricsList"});
  EXPECT_THAT(MilliOf(metrics->OfResource("cpu", "ns", "app=web", "main")), ElementsAre(Pair("a", 250)));
  list.clear_items();
  api->answers[target] = api::EncodeProtobuf(list, {"metrics.k8s.io", "v1beta1", "PodMetricsList"});
  EXPECT_THAT(MilliOf(metrics->OfResource("cpu", "ns", "app=web", "")),
              ElementsAre(Pair("no metrics returned from resource metrics API", -1)));
  EXPECT_THAT(
      MilliOf(metrics->OfResource("cpu", "ns", "app=other", "")),
      ElementsAre(Pair("unable to fetch metrics from resource metrics API: the server could not find the "
                       "requested resource (get pods.metrics.k8s.io)",
                       -1)));
}

TEST_F(MetricsTest, Pods) {
  EXPECT_THAT(MilliOf(metrics->OfPods("qps", "ns", "app=web", "")),
              ElementsAre(Pair("unable to fetch metrics from custom metrics API: no custom metrics API "
                               "(custom.metrics.k8s.io) registered",
                               -1)));
  ServeCustom("v1beta2");
  api->answers
      ["GET /apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/qps?labelSelector=app%3Dweb"
       "&metricLabelSelector=verb%3DGET"] = R"({"kind":"MetricValueList","items":[
      {"describedObject":{"kind":"Pod","name":"a"},"metric":{"name":"qps"},"value":"1500m"},
      {"describedObject":{"kind":"Pod","name":"b"},"metric":{"name":"qps"},"value":"20"},{"value":"1"},7]})";
  EXPECT_THAT(MilliOf(metrics->OfPods("qps", "ns", "app=web", "verb=GET")),
              ElementsAre(Pair("a", 1500), Pair("b", 20000)));
  api->refusal = Error(Code::kNotFound, "the server could not find the metric other for pods");
  EXPECT_THAT(
      MilliOf(metrics->OfPods("other", "ns", "app=web", "")),
      ElementsAre(Pair("unable to fetch metrics from custom metrics API: the server could not find the "
                       "metric other for pods",
                       -1)));
  ServeCustom("v1beta1");
  api->answers["GET /apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/pods/*/none?labelSelector=a"] =
      R"({"items":[]})";
  EXPECT_THAT(MilliOf(metrics->OfPods("none", "ns", "a", "")),
              ElementsAre(Pair("no metrics returned from custom metrics API", -1)));
}

TEST_F(MetricsTest, Objects) {
  ServeCustom("v1beta2");
  struct Case {
    const char *version, *kind, *path;
  };
  for (const Case& c : {Case{"v1", "Service", "services/x/rate"},
                        Case{"networking.k8s.io/v1", "Ingress", "ingresses.networking.k8s.io/x/rate"},
                        Case{"v1", "Namespace", "metrics/rate"},
                        Case{"example.com/v1", "Queue", "queues.example.com/x/rate"}}) {
    api->answers["GET /apis/example.com"] = R"({"versions":[{"version":"v1"}]})";
    api->answers["GET /apis/example.com/v1"] =
        R"({"resources":[{"name":"queues/scale","kind":"Scale"},{"name":"queues","kind":"Queue","namespaced":true}]})";
    api->answers[std::string("GET /apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/") + c.path] =
        R"({"items":[{"value":"2500m"}]})";
    api::autoscaling::v2::CrossVersionObjectReference object;
    object.set_api_version(c.version);
    object.set_kind(c.kind);
    object.set_name("x");
    Result<int64_t> value = metrics->OfObject("rate", "ns", object, "");
    ASSERT_TRUE(value) << c.kind << value.error().message();
    EXPECT_EQ(*value, 2500) << c.kind;
  }
  api::autoscaling::v2::CrossVersionObjectReference unknown;
  unknown.set_api_version("nowhere.com/v1");
  unknown.set_kind("Thing");
  EXPECT_EQ(metrics->OfObject("rate", "ns", unknown, "").error().message(),
            "unable to fetch metrics from custom metrics API: no matches for kind \"Thing\" in group "
            "\"nowhere.com\"");
}

TEST_F(MetricsTest, External) {
  Result<std::vector<int64_t>> values = metrics->OfExternal("depth", "ns", "");
  ASSERT_FALSE(values);
  EXPECT_EQ(
      values.error().message(),
      "unable to fetch metrics from external metrics API: the server could not find the requested resource "
      "(get depth.external.metrics.k8s.io)");
  api->answers["GET /apis/external.metrics.k8s.io/v1beta1/namespaces/ns/depth?labelSelector=queue%3Dq"] =
      R"({"items":[{"metricName":"depth","value":"3"},{"metricName":"depth","value":"500m"}]})";
  EXPECT_THAT(*metrics->OfExternal("depth", "ns", "queue=q"), ElementsAre(3000, 500));
}

TEST_F(MetricsTest, ScalesOfAnyKind) {
  const ScaleClient scales(client);
  api->answers["GET /apis/apps/v1/namespaces/ns/deployments/web/scale"] =
      R"({"kind":"Scale","metadata":{"name":"web","namespace":"ns","resourceVersion":"7"},
          "spec":{"replicas":3},"status":{"replicas":2,"selector":"app=web"}})";
  Result<FoundScale> found = scales.Get("ns", "apps/v1", "Deployment", "web");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->scale.status().selector(), "app=web");
  found->scale.mutable_spec()->set_replicas(5);
  const std::string put = "PUT /apis/apps/v1/namespaces/ns/deployments/web/scale";
  api->answers[put] = "{}";
  ASSERT_TRUE(scales.Put(*found));
  EXPECT_EQ(api->asked.back(), put);
  EXPECT_THAT(api->bodies.back(), HasSubstr(R"({"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{)"));
  EXPECT_THAT(api->bodies.back(), HasSubstr(R"("resourceVersion":"7")"));
  EXPECT_THAT(api->bodies.back(), HasSubstr(R"("spec":{"replicas":5})"));

  // A kind with two versions; only one has the scale subresource.
  api->answers["GET /apis/example.com"] = R"({"versions":[{"version":"v2"},{"version":"v1"}]})";
  for (const char* version : {"v1", "v2"}) {
    api->answers[std::string("GET /apis/example.com/") + version] =
        R"({"resources":[{"name":"farms","kind":"Farm","namespaced":true}]})";
  }
  api->answers["GET /apis/example.com/v1/namespaces/ns/farms/f/scale"] = R"({"spec":{"replicas":1}})";
  found = scales.Get("ns", "example.com/v1", "Farm", "f");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->path, "/apis/example.com/v1/namespaces/ns/farms/f/scale");

  EXPECT_EQ(scales.Get("ns", "apps/v1", "Deploymnt", "web").error().message(),
            "no matches for kind \"Deploymnt\" in group \"apps\"");
  api->refusal = Error(Code::kNotFound, "deployments.apps \"x\" not found");
  EXPECT_EQ(scales.Get("ns", "apps/v1", "Deployment", "x").error().message(),
            "deployments.apps \"x\" not found");
}

}  // namespace
}  // namespace keelson::controllers::podautoscaler
