// The cost of admission for the creation of a pod: all default plugins, both phases, with the namespace's
// LimitRange, ServiceAccount, PriorityClass and Pod Security labels in the caches.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "controlplane/apiserver/admission/testing/object_store.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "lib/api/proto/scheduling_v1.pb.h"

namespace keelson::apiserver {
namespace {

void Must(const Result<>& result) {
  if (result) return;
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  std::abort();
}

class Scene {
 public:
  Scene() {
    store_.Put<corev1::Namespace>(R"({"metadata":{"name":"ns","labels":{
        "pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/warn":"restricted"}}})");
    store_.Put<corev1::ServiceAccount>(R"({"metadata":{"name":"default","namespace":"ns"}})");
    store_.Put<corev1::LimitRange>(
        R"({"metadata":{"name":"l","namespace":"ns"},"spec":{"limits":[{"type":"Container",
        "min":{"cpu":"1m"},"max":{"cpu":"8"},"default":{"cpu":"1"},"defaultRequest":{"cpu":"100m"}}]}})");
    store_.Put<api::scheduling::v1::PriorityClass>(
        R"({"metadata":{"name":"high"},"value":1000,"globalDefault":true})");
    chain_ = NewAdmissionChain({}, store_.get(), std::make_shared<RbacAuthorizer>(), services_, NoGate,
                               api::FindKind);
    Must(api::DecodeJson(
        R"({"metadata":{"name":"p","namespace":"ns","labels":{"app":"web"}},"spec":{"containers":[
        {"name":"a","image":"registry.example.com/a:1","resources":{"requests":{"memory":"64Mi"}},
         "ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},
        {"name":"b","image":"registry.example.com/b:1"}]}})",
        pod_));
  }
  void Admit() {
    corev1::Pod pod = pod_;
    AdmissionNotes notes;
    const AdmissionRequest request{registry::Operation::kCreate,
                                   api::ResourceOf<corev1::Pod>(),
                                   "ns",
                                   "",
                                   &pod,
                                   nullptr,
                                   user_,
                                   false,
                                   &notes};
    Must(chain_->Mutate(request));
    Must(chain_->Validate(request));
    benchmark::DoNotOptimize(notes);
  }

 private:
  ObjectStore store_;
  const ServiceResolver services_{store_.get()};
  std::unique_ptr<AdmissionChain> chain_;
  corev1::Pod pod_;
  const User user_{"alice", "", {"system:authenticated"}, {}};
};

void AdmitPod(benchmark::State& state) {
  if (!etcd::TestEtcd::Available()) {
    state.SkipWithError("no etcd in PATH");
    return;
  }
  Scene scene;
  for (auto _ : state) scene.Admit();
}
BENCHMARK(AdmitPod)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace keelson::apiserver
