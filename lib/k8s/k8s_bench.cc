// What the API server does for every created pod.
#include <benchmark/benchmark.h>

#include "lib/api/codec/codec.h"
#include "lib/api/types.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::k8s {
namespace {

corev1::Pod TypicalPod() {
  corev1::Pod pod;
  const Result<> decoded = api::DecodeJson(R"({"metadata":{"name":"web-7d4b9c","namespace":"default",
    "labels":{"app":"web","pod-template-hash":"7d4b9c"},"annotations":{"example.com/a":"b"}},
    "spec":{"serviceAccountName":"default","volumes":[{"name":"config","configMap":{"name":"web"}},
      {"name":"token","projected":{"sources":[{"serviceAccountToken":{"path":"token"}},
        {"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}]}}],
    "containers":[
      {"name":"web","image":"registry.example.com/web:1.2","ports":[{"name":"http","containerPort":8080}],
       "env":[{"name":"A","value":"1"},{"name":"B","value":"2"},
              {"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
       "resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"cpu":"1","memory":"256Mi"}},
       "readinessProbe":{"httpGet":{"path":"/ready","port":"http"}},
       "volumeMounts":[{"name":"config","mountPath":"/etc/web"},
                       {"name":"token","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]},
      {"name":"log","image":"registry.example.com/log:3","resources":{"requests":{"cpu":"10m"}}}],
    "tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]}})",
                                           pod);
  if (!decoded) std::abort();
  return pod;
}

void BM_DefaultPod(benchmark::State& state) {
  const corev1::Pod pod = TypicalPod();
  for (auto _ : state) {
    state.PauseTiming();
    corev1::Pod copy = pod;
    state.ResumeTiming();
    SetDefaults(copy);
  }
}
BENCHMARK(BM_DefaultPod);

void BM_ValidatePod(benchmark::State& state) {
  corev1::Pod pod = TypicalPod();
  SetDefaults(pod);
  if (!Validate(pod).empty()) state.SkipWithError("not valid");
  for (auto _ : state) benchmark::DoNotOptimize(Validate(pod));
}
BENCHMARK(BM_ValidatePod);

}  // namespace
}  // namespace keelson::k8s
