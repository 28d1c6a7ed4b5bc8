#include "tests/policies/policy_objects.h"

#include "lib/api/codec/codec.h"

namespace keelson::policies {
namespace {

void AddPort(corev1::Container& container, const std::string& name, const char* protocol, int number) {
  auto& port = *container.add_ports();
  port.set_name(name);
  port.set_protocol(protocol);
  port.set_container_port(number);
}

}  // namespace

corev1::Pod MakePod(const std::string& name, const std::string& node,
                    const std::map<std::string, std::string>& labels,
                    const std::vector<IpAddress>& addresses) {
  const size_t slash = name.find('/');
  const std::string ns = name.substr(0, slash), own = name.substr(slash + 1);
  corev1::Pod out;
  out.mutable_metadata()->set_namespace_(ns);
  out.mutable_metadata()->set_name(own);
  out.mutable_metadata()->set_uid("uid-" + name);
  auto& all = *out.mutable_metadata()->mutable_labels();
  all["pod"] = own;
  for (const auto& [key, value] : labels) all[key] = value;
  out.mutable_spec()->set_node_name(node);
  corev1::Container& container = *out.mutable_spec()->add_containers();
  for (int port : {80, 81}) {
    const std::string serve = "serve-" + std::to_string(port);
    AddPort(container, serve + "-tcp", "TCP", port);
    AddPort(container, serve + "-udp", "UDP", port);
    AddPort(container, serve + "-sctp", "SCTP", port);
  }
  if (ns != "z") AddPort(container, "web", "TCP", own == "a" ? 80 : 81);
  out.mutable_status()->set_phase("Running");
  for (const IpAddress& address : addresses) out.mutable_status()->add_pod_ips()->set_ip(address.ToString());
  return out;
}

corev1::Namespace MakeNamespace(const std::string& name, const std::map<std::string, std::string>& labels) {
  corev1::Namespace out;
  out.mutable_metadata()->set_name(name);
  auto& all = *out.mutable_metadata()->mutable_labels();
  all["kubernetes.io/metadata.name"] = name;
  for (const auto& [key, value] : labels) all[key] = value;
  return out;
}

corev1::Node MakeNode(const std::string& name, const std::vector<IpAddress>& addresses) {
  corev1::Node out;
  out.mutable_metadata()->set_name(name);
  auto& labels = *out.mutable_metadata()->mutable_labels();
  labels["kubernetes.io/os"] = "linux";
  labels["node"] = name;
  for (const IpAddress& address : addresses) {
    auto& one = *out.mutable_status()->add_addresses();
    one.set_type("InternalIP");
    one.set_address(address.ToString());
  }
  return out;
}

Result<networkingv1::NetworkPolicy> MakePolicy(const std::string& name, const std::string& spec) {
  networkingv1::NetworkPolicy out;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson("{\"spec\":" + spec + "}", out));
  const size_t slash = name.find('/');
  out.mutable_metadata()->set_namespace_(name.substr(0, slash));
  out.mutable_metadata()->set_name(name.substr(slash + 1));
  if (out.spec().policy_types().empty()) {
    out.mutable_spec()->add_policy_types("Ingress");
    if (!out.spec().egress().empty()) out.mutable_spec()->add_policy_types("Egress");
  }
  return out;
}

}  // namespace keelson::policies
