// Services and their endpoints.
#include "lib/k8s/defaulting/table.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::k8s {

namespace {

constexpr int32_t kAffinitySeconds = 3 * 60 * 60;

void DefaultAffinity(corev1::ServiceSpec& spec) {
  if (spec.session_affinity().empty()) spec.set_session_affinity("None");
  if (spec.session_affinity() == "None") {
    spec.clear_session_affinity_config();
  } else if (spec.session_affinity() == "ClientIP" &&
             !spec.session_affinity_config().client_ip().has_timeout_seconds()) {
    spec.mutable_session_affinity_config()->mutable_client_ip()->set_timeout_seconds(kAffinitySeconds);
  }
}

void DefaultPort(corev1::ServicePort& port) {
  if (port.protocol().empty()) port.set_protocol("TCP");
  const intstr::IntOrString& target = port.target_port();
  const bool unset = IsString(target) ? target.str_val().empty() : target.int_val() == 0;
  if (unset && port.port() != 0) *port.mutable_target_port() = FromInt(port.port());
}

void DefaultService(corev1::Service& service) {
  corev1::ServiceSpec& spec = *service.mutable_spec();
  DefaultAffinity(spec);
  if (spec.type().empty()) spec.set_type("ClusterIP");
  for (corev1::ServicePort& port : *spec.mutable_ports()) DefaultPort(port);
  const bool balanced = spec.type() == "LoadBalancer";
  const bool node_ports = balanced || spec.type() == "NodePort";
  const bool cluster_ip = spec.type() == "ClusterIP";
  const bool external = node_ports || (cluster_ip && !spec.external_ips().empty());
  if (external && spec.external_traffic_policy().empty()) spec.set_external_traffic_policy("Cluster");
  if ((node_ports || cluster_ip) && !spec.has_internal_traffic_policy()) {
    spec.set_internal_traffic_policy("Cluster");
  }
  if (!balanced) return;
  if (!spec.has_allocate_load_balancer_node_ports()) spec.set_allocate_load_balancer_node_ports(true);
  if (service.status().load_balancer().ingress().empty()) return;
  for (corev1::LoadBalancerIngress& ingress :
       *service.mutable_status()->mutable_load_balancer()->mutable_ingress()) {
    if (!ingress.ip().empty() && !ingress.has_ip_mode()) ingress.set_ip_mode("VIP");
  }
}

void DefaultEndpoints(corev1::Endpoints& endpoints) {
  for (corev1::EndpointSubset& subset : *endpoints.mutable_subsets()) {
    for (corev1::EndpointPort& port : *subset.mutable_ports()) {
      if (port.protocol().empty()) port.set_protocol("TCP");
    }
  }
}

void DefaultEndpointSlice(discoveryv1::EndpointSlice& slice) {
  for (discoveryv1::EndpointPort& port : *slice.mutable_ports()) {
    if (!port.has_name()) port.set_name("");
    if (!port.has_protocol()) port.set_protocol("TCP");
  }
}

}  // namespace

void RegisterServiceDefaults(DefaultTable& table) {
  table.Add<corev1::Service, DefaultService>();
  table.Add<corev1::Endpoints, DefaultEndpoints>();
  table.Add<discoveryv1::EndpointSlice, DefaultEndpointSlice>();
}

}  // namespace keelson::k8s
