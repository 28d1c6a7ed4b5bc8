// Pods, pod templates and their parts.
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/defaulting/table.h"

namespace keelson::k8s {

namespace {

constexpr std::string_view kTerminationLog = "/dev/termination-log";

void DefaultHttpGet(corev1::HTTPGetAction& action) {
  if (action.path().empty()) action.set_path("/");
  if (action.scheme().empty()) action.set_scheme("HTTP");
}

void DefaultProbe(corev1::Probe& probe) {
  if (probe.timeout_seconds() == 0) probe.set_timeout_seconds(1);
  if (probe.period_seconds() == 0) probe.set_period_seconds(10);
  if (probe.success_threshold() == 0) probe.set_success_threshold(1);
  if (probe.failure_threshold() == 0) probe.set_failure_threshold(3);
  if (!probe.has_handler()) return;
  corev1::ProbeHandler& handler = *probe.mutable_handler();
  if (handler.has_http_get()) DefaultHttpGet(*handler.mutable_http_get());
  // Clients see `service: ""`: the field is present in the API.
  if (handler.has_grpc() && !handler.grpc().has_service()) handler.mutable_grpc()->set_service("");
}

void DefaultHook(corev1::LifecycleHandler& handler) {
  if (handler.has_http_get()) DefaultHttpGet(*handler.mutable_http_get());
}

void DefaultEnv(google::protobuf::RepeatedPtrField<corev1::EnvVar>& env) {
  for (corev1::EnvVar& variable : env) {
    if (!variable.has_value_from() || !variable.value_from().has_field_ref()) continue;
    corev1::ObjectFieldSelector& field = *variable.mutable_value_from()->mutable_field_ref();
    if (field.api_version().empty()) field.set_api_version("v1");
  }
}

void RoundResources(corev1::ResourceRequirements& resources) {
  RoundQuantities(*resources.mutable_limits());
  RoundQuantities(*resources.mutable_requests());
}

// Container and EphemeralContainerCommon have the same fields.
template <typename C>
void DefaultContainer(C& container) {
  if (container.image_pull_policy().empty()) {
    container.set_image_pull_policy(std::string(PullPolicyOf(container.image())));
  }
  if (container.termination_message_path().empty()) {
    container.set_termination_message_path(std::string(kTerminationLog));
  }
  if (container.termination_message_policy().empty()) container.set_termination_message_policy("File");
  for (corev1::ContainerPort& port : *container.mutable_ports()) {
    if (port.protocol().empty()) port.set_protocol("TCP");
  }
  DefaultEnv(*container.mutable_env());
  if (container.has_resources()) RoundResources(*container.mutable_resources());
  if (container.has_liveness_probe()) DefaultProbe(*container.mutable_liveness_probe());
  if (container.has_readiness_probe()) DefaultProbe(*container.mutable_readiness_probe());
  if (container.has_startup_probe()) DefaultProbe(*container.mutable_startup_probe());
  if (container.has_lifecycle()) {
    corev1::Lifecycle& lifecycle = *container.mutable_lifecycle();
    if (lifecycle.has_post_start()) DefaultHook(*lifecycle.mutable_post_start());
    if (lifecycle.has_pre_stop()) DefaultHook(*lifecycle.mutable_pre_stop());
  }
}

// For pods only: a template keeps what its author wrote.
void DefaultRequestsFromLimits(corev1::Container& container) {
  if (container.resources().limits().empty()) return;
  QuantityMap& requests = *container.mutable_resources()->mutable_requests();
  for (const auto& [name, limit] : container.resources().limits()) requests.insert({name, limit});
}

void DefaultHostPorts(corev1::Container& container) {
  for (corev1::ContainerPort& port : *container.mutable_ports()) {
    if (port.host_port() == 0) port.set_host_port(port.container_port());
  }
}

// spec.resources, if the author set a part of it: missing requests and limits follow from the containers.
void DefaultPodLevelResources(corev1::Pod& pod) {
  if (!pod.spec().has_resources()) return;
  corev1::ResourceRequirements& resources = *pod.mutable_spec()->mutable_resources();
  RoundResources(resources);
  if (resources.limits().empty() && resources.requests().empty()) return;
  const PodResourcesOptions of_containers{.exclude_overhead = true, .exclude_pod_level = true};
  for (const auto& [name, amount] : PodLimits(pod, of_containers)) {
    if (!IsHugePages(name) || resources.requests().contains(name)) continue;
    resources.mutable_limits()->insert({name, amount.ToQuantity()});
  }
  if (resources.limits().empty()) return;
  for (const auto& [name, amount] : PodRequests(pod, of_containers)) {
    if (!IsPodLevelResource(name) || IsHugePages(name)) continue;
    resources.mutable_requests()->insert({name, amount.ToQuantity()});
  }
  for (const auto& [name, limit] : resources.limits()) {
    if (IsPodLevelResource(name)) resources.mutable_requests()->insert({name, limit});
  }
}

void DefaultPod(corev1::Pod& pod) {
  corev1::PodSpec& spec = *pod.mutable_spec();
  DefaultPodSpec(spec);
  // Templates keep the value, so that stored objects do not roll out again.
  if (spec.termination_grace_period_seconds() < 0) spec.set_termination_grace_period_seconds(1);
  for (corev1::Container& container : *spec.mutable_containers()) DefaultRequestsFromLimits(container);
  for (corev1::Container& container : *spec.mutable_init_containers()) DefaultRequestsFromLimits(container);
  DefaultPodLevelResources(pod);
  if (!spec.has_enable_service_links()) spec.set_enable_service_links(true);
  if (spec.host_network()) {
    for (corev1::Container& container : *spec.mutable_containers()) DefaultHostPorts(container);
    for (corev1::Container& container : *spec.mutable_init_containers()) DefaultHostPorts(container);
  }
}

void DefaultPodTemplate(corev1::PodTemplate& object) {
  DefaultPodSpec(*object.mutable_template_()->mutable_spec());
}

}  // namespace

std::string_view PullPolicyOf(std::string_view image) {
  const size_t digest = image.find('@');
  const bool has_digest = digest != std::string_view::npos;
  std::string_view name = image.substr(0, digest);
  const size_t slash = name.rfind('/');
  const size_t colon = name.find(':', slash == std::string_view::npos ? 0 : slash);
  std::string_view tag = colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1);
  if (tag.empty() && !has_digest && !image.empty()) tag = "latest";
  return tag == "latest" ? "Always" : "IfNotPresent";
}

void RoundQuantities(QuantityMap& quantities) {
  for (auto& [name, quantity] : quantities) {
    const std::string& text = quantity.string();
    // Only these spellings can be finer than 1/1000.
    if (text.find_first_of("nu.e") == std::string::npos) continue;
    const api::Amount amount = api::Amount::Of(quantity);
    const api::Amount rounded = api::Amount::FromMilli(amount.MilliValue());
    if (rounded > amount) quantity = rounded.ToQuantity();
  }
}

void DefaultPodSpec(corev1::PodSpec& spec) {
  if (spec.dns_policy().empty()) spec.set_dns_policy("ClusterFirst");
  if (spec.restart_policy().empty()) spec.set_restart_policy("Always");
  if (!spec.has_security_context()) spec.mutable_security_context();
  if (!spec.has_termination_grace_period_seconds()) spec.set_termination_grace_period_seconds(30);
  if (spec.scheduler_name().empty()) spec.set_scheduler_name("default-scheduler");
  // serviceAccount is the old name. Both are always set; serviceAccountName wins.
  if (spec.service_account_name().empty() && !spec.service_account().empty()) {
    spec.set_service_account_name(spec.service_account());
  }
  if (spec.service_account() != spec.service_account_name()) {
    spec.set_service_account(spec.service_account_name());
  }
  for (corev1::Volume& volume : *spec.mutable_volumes()) DefaultVolume(volume);
  for (corev1::Container& container : *spec.mutable_init_containers()) DefaultContainer(container);
  for (corev1::Container& container : *spec.mutable_containers()) DefaultContainer(container);
  for (corev1::EphemeralContainer& container : *spec.mutable_ephemeral_containers()) {
    DefaultContainer(*container.mutable_ephemeral_container_common());
  }
  RoundQuantities(*spec.mutable_overhead());
}

void SetPodDefaults(corev1::Pod& pod) { DefaultPod(pod); }

void RegisterPodDefaults(DefaultTable& table) {
  table.Add<corev1::Pod, DefaultPod>();
  table.Add<corev1::PodTemplate, DefaultPodTemplate>();
}

}  // namespace keelson::k8s
