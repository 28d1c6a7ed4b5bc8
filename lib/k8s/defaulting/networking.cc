// Network policies and ingress classes.
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/k8s/defaulting/table.h"

namespace keelson::k8s {

namespace networkingv1 = api::networking::v1;

namespace {

void DefaultPorts(google::protobuf::RepeatedPtrField<networkingv1::NetworkPolicyPort>& ports) {
  for (networkingv1::NetworkPolicyPort& port : ports) {
    if (!port.has_protocol()) port.set_protocol("TCP");
  }
}

void DefaultNetworkPolicy(networkingv1::NetworkPolicy& object) {
  networkingv1::NetworkPolicySpec& spec = *object.mutable_spec();
  for (auto& rule : *spec.mutable_ingress()) DefaultPorts(*rule.mutable_ports());
  for (auto& rule : *spec.mutable_egress()) DefaultPorts(*rule.mutable_ports());
  if (!spec.policy_types().empty()) return;
  spec.add_policy_types("Ingress");
  if (!spec.egress().empty()) spec.add_policy_types("Egress");
}

void DefaultIngressClass(networkingv1::IngressClass& object) {
  if (!object.spec().has_parameters() || object.spec().parameters().has_scope()) return;
  object.mutable_spec()->mutable_parameters()->set_scope("Cluster");
}

}  // namespace

void RegisterNetworkingDefaults(DefaultTable& table) {
  table.Add<networkingv1::NetworkPolicy, DefaultNetworkPolicy>();
  table.Add<networkingv1::IngressClass, DefaultIngressClass>();
}

}  // namespace keelson::k8s
