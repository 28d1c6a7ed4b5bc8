// What a validating webhook adds to a request, beside its own round trip: a call through the plugin, and the
// same bytes through the HTTP client alone.
#include <benchmark/benchmark.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/testing/object_store.h"
#include "controlplane/apiserver/admission/webhook/review.h"
#include "controlplane/apiserver/admission/webhook/testing/hook_server.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/http/client/client.h"

namespace keelson::apiserver {
namespace {

void Must(const Result<>& result) {
  if (!result) abort();
}

const User kUser{"alice", "", {"system:authenticated"}, {}};

class Scene {
 public:
  Scene()
      : services_(store_.get()),
        plugin_(NewValidatingWebhooks(store_.get(), services_, std::make_shared<RbacAuthorizer>())) {
    store_.Put<corev1::Namespace>(R"({"metadata":{"name":"ns"}})");
    store_.Put<api::admissionregistration::v1::ValidatingWebhookConfiguration>(
        R"({"metadata":{"name":"v"},"webhooks":[{"name":"v.example.com","admissionReviewVersions":["v1"],
        "sideEffects":"None","rules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],
        "resources":["pods"]}],"clientConfig":{"url":")" +
        server_.service().url() + R"(/v","caBundle":")" + EncodeBase64(server_.service().ca_pem()) +
        "\"}}]}");
    Must(api::DecodeJson(R"({"metadata":{"name":"p","namespace":"ns"},"spec":{"containers":[{"name":"a",
        "image":"registry.example.com/a:1","resources":{"requests":{"memory":"64Mi"}},
        "env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}]}})",
                         pod_));
  }
  AdmissionRequest Request() {
    return {registry::Operation::kCreate, api::ResourceOf<corev1::Pod>(), "ns", "p", &pod_, nullptr, kUser};
  }

  HookServer server_;
  ObjectStore store_;
  const ServiceResolver services_;
  PluginPtr plugin_;
  corev1::Pod pod_;
};

void ThroughThePlugin(benchmark::State& state) {
  if (!etcd::TestEtcd::Available()) return state.SkipWithError("no etcd in PATH");
  Scene scene;
  for (auto _ : state) Must(scene.plugin_->Validate(scene.Request()));
}
BENCHMARK(ThroughThePlugin)->Unit(benchmark::kMicrosecond)->UseRealTime();

void RoundTripAlone(benchmark::State& state) {
  if (!etcd::TestEtcd::Available()) return state.SkipWithError("no etcd in PATH");
  Scene scene;
  const api::ResourceInfo& row = api::ResourceOf<corev1::Pod>();
  http::ClientOptions options;
  options.base_url = scene.server_.service().url();
  options.tls.ca_pem = scene.server_.service().ca_pem();
  auto client = std::move(*http::Client::Create(std::move(options)));
  http::ClientRequest request;
  request.method = "POST";
  request.target = "/v";
  request.body =
      webhook::MakeQuestion(scene.Request(), "v1", row, api::EncodeJson(scene.pod_, row.Gvk()), "").json;
  for (auto _ : state) {
    if (!client->Do(request, std::chrono::seconds(10))) abort();
  }
}
BENCHMARK(RoundTripAlone)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace keelson::apiserver
