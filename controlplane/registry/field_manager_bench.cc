// The cost of managed fields per write.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <boost/json/parse.hpp>

#include "controlplane/registry/field_manager.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/k8s/defaulting/defaulting.h"

namespace keelson::registry {
namespace {

corev1::Pod MakePod() {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name("web-7d9c6b5f4-abcde");
  pod.mutable_metadata()->set_namespace_("default");
  (*pod.mutable_metadata()->mutable_labels())["app"] = "web";
  (*pod.mutable_metadata()->mutable_labels())["pod-template-hash"] = "7d9c6b5f4";
  for (int i = 0; i < 3; ++i) {
    auto& container = *pod.mutable_spec()->add_containers();
    container.set_name(fmt::format("container-{}", i));
    container.set_image("registry.example.com/team/service:v1.2.3");
    for (int j = 0; j < 12; ++j) {
      auto& variable = *container.add_env();
      variable.set_name(fmt::format("SERVICE_SETTING_{}", j));
      variable.set_value("value");
    }
    container.add_ports()->set_container_port(8080 + i);
    (*container.mutable_resources()->mutable_requests())["cpu"].set_string("100m");
  }
  k8s::SetDefaults(pod);
  return pod;
}

corev1::ConfigMap MakeConfigMap() {
  corev1::ConfigMap map;
  map.mutable_metadata()->set_name("settings");
  map.mutable_metadata()->set_namespace_("default");
  for (int i = 0; i < 4; ++i) (*map.mutable_data())[fmt::format("key-{}", i)] = "value";
  return map;
}

template <typename T>
FieldWrite WriteOf(std::string_view manager, std::string_view subresource = "", Part part = Part::kMain) {
  const ResourceInfo& main = api::ResourceOf(T::descriptor());
  const ResourceInfo* row =
      api::FindResource(main.group, main.version, std::string(main.resource) + std::string(subresource));
  return {*row, manager, WallTime() + std::chrono::hours(1), ResetFilter(main, part)};
}

template <typename T>
T Created(T object) {
  *object.mutable_metadata()->mutable_managed_fields() =
      ManageUpdate(WriteOf<T>("kube-controller-manager"), nullptr, object);
  object.mutable_metadata()->set_uid("0b2f9f0e-7a41-4c39-9d1e-5f0c9a8b7c6d");
  return object;
}

template <typename T>
void Create(benchmark::State& state, T object) {
  FieldWrite write = WriteOf<T>("kube-controller-manager");
  for (auto _ : state) benchmark::DoNotOptimize(ManageUpdate(write, nullptr, object));
}
BENCHMARK_CAPTURE(Create, ConfigMap, MakeConfigMap());
BENCHMARK_CAPTURE(Create, Pod, MakePod());

template <typename T>
void UpdateUnchanged(benchmark::State& state, T object) {
  T live = Created(object);
  FieldWrite write = WriteOf<T>("kubelet");
  for (auto _ : state) {
    state.PauseTiming();
    T next = live;
    state.ResumeTiming();
    benchmark::DoNotOptimize(ManageUpdate(write, &live, next));
  }
}
BENCHMARK_CAPTURE(UpdateUnchanged, ConfigMap, MakeConfigMap());
BENCHMARK_CAPTURE(UpdateUnchanged, Pod, MakePod());

void UpdatePodStatus(benchmark::State& state) {
  corev1::Pod live = Created(MakePod()), next = live;
  for (const char* type : {"Initialized", "Ready", "ContainersReady", "PodScheduled"}) {
    auto& condition = *next.mutable_status()->add_conditions();
    condition.set_type(type);
    condition.set_status("True");
  }
  next.mutable_status()->set_phase("Running");
  FieldWrite write = WriteOf<corev1::Pod>("kubelet", "/status", Part::kStatus);
  for (auto _ : state) {
    state.PauseTiming();
    corev1::Pod sent = next;
    state.ResumeTiming();
    benchmark::DoNotOptimize(ManageUpdate(write, &live, sent));
  }
}
BENCHMARK(UpdatePodStatus);

void ApplyPod(benchmark::State& state) {
  corev1::Pod pod = MakePod();
  boost::json::value config = boost::json::parse(api::EncodeJson(pod, {"", "v1", "Pod"}));
  config.get_object().erase("status");
  FieldWrite write = WriteOf<corev1::Pod>("applier");
  auto applied = ManageApply(write, nullptr, config, false);
  if (!applied) return state.SkipWithError(applied.error().message().c_str());
  auto& live = static_cast<corev1::Pod&>(**applied);
  live.mutable_metadata()->set_uid("0b2f9f0e-7a41-4c39-9d1e-5f0c9a8b7c6d");
  for (auto _ : state) benchmark::DoNotOptimize(ManageApply(write, &live, config, false));
}
BENCHMARK(ApplyPod);

}  // namespace
}  // namespace keelson::registry
