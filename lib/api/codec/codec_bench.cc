// Throughput of the codec on a typical pod: 3 containers, 36 variables, status (about 3 KB on the wire).
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/table/table.h"

namespace keelson::api {
namespace {

const GroupVersionKind kPod{"", "v1", "Pod"};

void AddContainer(corev1::Pod& pod, int index) {
  auto& container = *pod.mutable_spec()->add_containers();
  container.set_name(fmt::format("container-{}", index));
  container.set_image(fmt::format("registry.example.com/team/service-{}:v1.2.3", index));
  for (int i = 0; i < 12; ++i) {
    auto& variable = *container.add_env();
    variable.set_name(fmt::format("SERVICE_SETTING_{}", i));
    variable.set_value(fmt::format("value-of-setting-{}", i));
  }
  auto& port = *container.add_ports();
  port.set_container_port(8080 + index);
  port.set_protocol("TCP");
  auto& resources = *container.mutable_resources();
  (*resources.mutable_requests())["cpu"].set_string("100m");
  (*resources.mutable_requests())["memory"].set_string("128Mi");
  (*resources.mutable_limits())["memory"].set_string("256Mi");
  auto& mount = *container.add_volume_mounts();
  mount.set_name("kube-api-access");
  mount.set_read_only(true);
  mount.set_mount_path("/var/run/secrets/kubernetes.io/serviceaccount");
  container.mutable_liveness_probe()->mutable_handler()->mutable_http_get()->set_path("/healthz");
  container.set_termination_message_path("/dev/termination-log");
  container.set_image_pull_policy("IfNotPresent");
  auto& status = *pod.mutable_status()->add_container_statuses();
  status.set_name(container.name());
  status.set_ready(true);
  status.set_image(container.image());
  status.set_image_id("sha256:4c0d3f2b6a8e9d7c5b3a1f0e9d8c7b6a5f4e3d2c1b0a9f8e7d6c5b4a3f2e1d0c");
  status.set_container_id("containerd://9f8e7d6c5b4a3f2e1d0c4c0d3f2b6a8e9d7c5b3a1f0e9d8c7b6a5f4e3d2c1b0a");
  status.mutable_state()->mutable_running()->mutable_started_at()->set_seconds(1767225600);
}

corev1::Pod MakePod() {
  corev1::Pod pod;
  auto& meta = *pod.mutable_metadata();
  meta.set_name("service-7d9c6b5f4-abcde");
  meta.set_namespace_("production");
  meta.set_uid("0b2f9f0e-7a41-4c39-9d1e-5f0c9a8b7c6d");
  meta.set_resource_version("123456");
  meta.mutable_creation_timestamp()->set_seconds(1767225600);
  (*meta.mutable_labels())["app"] = "service";
  (*meta.mutable_labels())["pod-template-hash"] = "7d9c6b5f4";
  for (int i = 0; i < 3; ++i) AddContainer(pod, i);
  auto& spec = *pod.mutable_spec();
  spec.set_node_name("node-17");
  spec.set_restart_policy("Always");
  spec.set_dns_policy("ClusterFirst");
  spec.set_service_account_name("default");
  spec.set_scheduler_name("default-scheduler");
  spec.set_termination_grace_period_seconds(30);
  auto& status = *pod.mutable_status();
  status.set_phase("Running");
  status.set_pod_ip("10.244.17.3");
  status.add_pod_ips()->set_ip("10.244.17.3");
  status.set_host_ip("192.168.1.17");
  for (const char* type : {"Initialized", "Ready", "ContainersReady", "PodScheduled"}) {
    auto& condition = *status.add_conditions();
    condition.set_type(type);
    condition.set_status("True");
    condition.mutable_last_transition_time()->set_seconds(1767225600);
  }
  return pod;
}

void Finish(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(bytes));
}

void BM_EncodeJson(benchmark::State& state) {
  corev1::Pod pod = MakePod();
  std::string out;
  for (auto _ : state) {
    out.clear();
    EncodeJson(pod, &kPod, out);
    benchmark::DoNotOptimize(out);
  }
  Finish(state, out.size());
}
BENCHMARK(BM_EncodeJson);

void BM_WireToJson(benchmark::State& state) {
  std::string raw = EncodeRaw(MakePod()), out;
  for (auto _ : state) {
    out.clear();
    WireToJson(corev1::Pod::descriptor(), raw, &kPod, out);
    benchmark::DoNotOptimize(out);
  }
  Finish(state, out.size());
}
BENCHMARK(BM_WireToJson);

void BM_DecodeJson(benchmark::State& state) {
  std::string json = EncodeJson(MakePod(), kPod);
  for (auto _ : state) {
    corev1::Pod pod;
    DecodeReport report;
    benchmark::DoNotOptimize(DecodeJson(json, pod, &report).has_value());
  }
  Finish(state, json.size());
}
BENCHMARK(BM_DecodeJson);

void BM_JsonToWire(benchmark::State& state) {
  std::string json = EncodeJson(MakePod(), kPod), out;
  for (auto _ : state) {
    out.clear();
    benchmark::DoNotOptimize(JsonToWire(corev1::Pod::descriptor(), json, out).has_value());
  }
  Finish(state, json.size());
}
BENCHMARK(BM_JsonToWire);

void BM_EncodeRaw(benchmark::State& state) {
  corev1::Pod pod = MakePod();
  size_t size = 0;
  for (auto _ : state) {
    std::string raw = EncodeRaw(pod);
    size = raw.size();
    benchmark::DoNotOptimize(raw);
  }
  Finish(state, size);
}
BENCHMARK(BM_EncodeRaw);

void BM_DecodeRaw(benchmark::State& state) {
  std::string raw = EncodeRaw(MakePod());
  for (auto _ : state) {
    corev1::Pod pod;
    benchmark::DoNotOptimize(DecodeRaw(raw, pod).has_value());
  }
  Finish(state, raw.size());
}
BENCHMARK(BM_DecodeRaw);

void BM_NormalizeWire(benchmark::State& state) {
  std::string raw = EncodeRaw(MakePod()), out;
  for (auto _ : state) {
    out.clear();
    benchmark::DoNotOptimize(NormalizeWire(corev1::Pod::descriptor(), raw, out).has_value());
  }
  Finish(state, raw.size());
}
BENCHMARK(BM_NormalizeWire);

void BM_TableCells(benchmark::State& state) {
  corev1::Pod pod = MakePod();
  for (auto _ : state) benchmark::DoNotOptimize(TableCells(pod));
}
BENCHMARK(BM_TableCells);

}  // namespace
}  // namespace keelson::api
