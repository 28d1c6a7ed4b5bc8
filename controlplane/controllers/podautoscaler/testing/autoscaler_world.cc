#include "controlplane/controllers/podautoscaler/testing/autoscaler_world.h"

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using podautoscaler::PodValues;

struct FakeMetrics : podautoscaler::MetricsClient {
  explicit FakeMetrics(SaidMetrics& s) : said(s) {}

  Result<PodValues> Find(const std::string& what, const std::string& name) {
    said.asked.push_back(what);
    auto found = said.by_name.find(name);
    if (found == said.by_name.end()) return Error(Code::kNotFound, "no metrics returned");
    return found->second;
  }
  Result<int64_t> FindValue(const std::string& what, const std::string& name) {
    said.asked.push_back(what);
    auto found = said.values.find(name);
    if (found == said.values.end()) return Error(Code::kNotFound, "no metrics returned");
    return found->second;
  }
  Result<PodValues> OfResource(const std::string& resource, const std::string& ns,
                               const std::string& selector, const std::string& container) override {
    return Find(resource + " of " + ns + "/" + selector + " " + container, resource);
  }
  Result<PodValues> OfPods(const std::string& metric, const std::string& ns, const std::string& selector,
                           const std::string& metric_selector) override {
    return Find(metric + " of " + ns + "/" + selector + " " + metric_selector, metric);
  }
  Result<int64_t> OfObject(const std::string& metric, const std::string& ns,
                           const api::autoscaling::v2::CrossVersionObjectReference& object,
                           const std::string& metric_selector) override {
    return FindValue(metric + " of " + ns + "/" + object.name() + " " + metric_selector, metric);
  }
  Result<std::vector<int64_t>> OfExternal(const std::string& metric, const std::string& ns,
                                          const std::string& metric_selector) override {
    Result<int64_t> value = FindValue(metric + " of " + ns + " " + metric_selector, metric);
    if (!value) return value.error();
    return std::vector<int64_t>{*value / 2, *value - *value / 2};
  }
  SaidMetrics& said;
};

}  // namespace

void AutoscalerTest::SetUp() {
  cluster_.clock.Advance(std::chrono::hours(24 * 365 * 40));
  cluster_.fake->SetInterceptor([this](const client::ApiRequest& request) { return Intercept(request); });
  controller_ = &cluster_.Make<PodAutoscalerController>(options_, std::make_unique<FakeMetrics>(said_));
}

std::optional<Result<client::ApiResponse>> AutoscalerTest::Intercept(const client::ApiRequest& request) {
  constexpr std::string_view kBegin = "/apis/apps/v1/namespaces/default/deployments/";
  if (request.target.rfind(kBegin, 0) != 0) return std::nullopt;
  const std::string name = request.target.substr(kBegin.size(), request.target.rfind('/') - kBegin.size());
  auto answer = [](const Error& error) {
    return client::ApiResponse{HttpStatus(error.code()), "application/json",
                               api::EncodeJson(api::ToStatus(error), {"", "v1", "Status"})};
  };
  auto found = scales_.find(name);
  if (found == scales_.end()) {
    return answer(Error(Code::kNotFound, "deployments.apps \"" + name + "\" not found").WithDetails({}));
  }
  if (request.method == "PUT") {
    if (refuse_put_ && refusals_left_ > 0) {
      --refusals_left_;
      on_refusal_();
      return answer(*refuse_put_);
    }
    autoscalingv1::Scale scale;
    EXPECT_TRUE(api::DecodeJson(request.body, scale));
    found->second.mutable_spec()->set_replicas(scale.spec().replicas());
    ++puts_;
  }
  return client::ApiResponse{200, "application/json",
                             api::EncodeJson(found->second, {"autoscaling", "v1", "Scale"})};
}

void AutoscalerTest::AddScale(const std::string& name, int32_t replicas,
                              std::optional<std::string> selector) {
  autoscalingv1::Scale scale;
  scale.mutable_metadata()->set_name(name);
  scale.mutable_metadata()->set_namespace_("default");
  if (replicas > 0) scale.mutable_spec()->set_replicas(replicas);
  if (replicas > 0) scale.mutable_status()->set_replicas(replicas);
  scale.mutable_status()->set_selector(selector.value_or("app=" + name));
  scales_[name] = scale;
}

void AutoscalerTest::SetPods(const std::string& name, const std::vector<int64_t>& used) {
  PodValues& values = said_.by_name["cpu"];
  values.clear();
  for (size_t i = 0; i < used.size(); ++i) {
    corev1::Pod pod = PodNamed(name + "-" + std::to_string(i), {{"app", name}}, "n1");
    (*pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests())["cpu"].set_string(
        "1");
    MakeReady(pod, cluster_.clock.Now() - std::chrono::hours(1));
    *pod.mutable_status()->mutable_start_time() = api::ToTime(cluster_.clock.Now() - std::chrono::hours(1));
    cluster_.fake->Put(pod);
    values[pod.metadata().name()] = {cluster_.clock.Now(), std::chrono::seconds(15), used[i]};
  }
}

void AutoscalerTest::Put(const std::string& name, const std::string& spec) {
  Autoscaler autoscaler;
  ASSERT_TRUE(api::DecodeJson(
      R"({"metadata":{"name":")" + name + R"(","namespace":"default"},"spec":)" + spec + "}", autoscaler))
      << spec;
  cluster_.fake->Put(autoscaler);
}

std::string AutoscalerTest::Spec(const std::string& target, const std::string& metrics,
                                 const std::string& more) {
  return R"({"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":")" + target +
         R"("},"minReplicas":1,"maxReplicas":10,"metrics":[)" + metrics + "]" + more + "}";
}

std::string AutoscalerTest::Cpu(int percent) {
  return R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":)" +
         std::to_string(percent) + "}}}";
}

void AutoscalerTest::Start() {
  cluster_.Start();
  cluster_.Drain({controller_});
}

std::vector<std::string> AutoscalerTest::Conditions(const Autoscaler& autoscaler) {
  std::vector<std::string> out;
  for (const auto& one : autoscaler.status().conditions()) {
    out.push_back(one.type() + "=" + one.status() + " " + one.reason() + ": " + one.message());
  }
  return out;
}

}  // namespace keelson::controllers
