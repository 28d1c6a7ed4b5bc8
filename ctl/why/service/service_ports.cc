#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ctl/why/service/service_judge.h"
#include "lib/api/selector.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

std::string ProtocolOf(const std::string& protocol) { return protocol.empty() ? "TCP" : protocol; }

std::string PortText(const corev1::ServicePort& port) {
  return fmt::format("{}/{}{}", port.port(), ProtocolOf(port.protocol()),
                     port.name().empty() ? "" : " (" + port.name() + ")");
}

intstr::IntOrString TargetOf(const corev1::ServicePort& port) {
  const bool given = port.has_target_port() && k8s::ToString(port.target_port()) != "0" &&
                     !k8s::ToString(port.target_port()).empty();
  return given ? port.target_port() : k8s::FromInt(port.port());
}

// Of all containers that receive traffic: sidecars do as well.
std::vector<corev1::ContainerPort> PortsOf(const corev1::Pod& pod) {
  std::vector<corev1::ContainerPort> out;
  auto add = [&](const corev1::Container& container) {
    out.insert(out.end(), container.ports().begin(), container.ports().end());
  };
  for (const corev1::Container& container : pod.spec().containers()) add(container);
  for (const corev1::Container& container : pod.spec().init_containers()) {
    if (k8s::IsSidecar(container)) add(container);
  }
  return out;
}

// "http=8080/TCP"
std::set<std::string> Declared(const corev1::Pod& pod) {
  std::set<std::string> out;
  for (const corev1::ContainerPort& port : PortsOf(pod)) {
    out.insert(fmt::format("{}{}{}/{}", port.name(), port.name().empty() ? "" : "=", port.container_port(),
                           ProtocolOf(port.protocol())));
  }
  return out;
}

bool Declares(const corev1::Pod& pod, int32_t number, const std::string& protocol) {
  const std::vector<corev1::ContainerPort> ports = PortsOf(pod);
  return std::any_of(ports.begin(), ports.end(), [&](const corev1::ContainerPort& port) {
    return port.container_port() == number && ProtocolOf(port.protocol()) == protocol;
  });
}

void JudgePort(const ServiceHealthView& view, const corev1::ServicePort& port,
               const std::vector<const corev1::Pod*>& ready, std::vector<Problem>& out) {
  const intstr::IntOrString target = TargetOf(port);
  const std::string protocol = ProtocolOf(port.protocol()), text = k8s::ToString(target);
  std::set<std::string> declared;
  std::vector<std::string> without;
  bool all_declare = true;
  for (const corev1::Pod* pod : ready) {
    const std::set<std::string> own = Declared(*pod);
    const int32_t number = k8s::ResolvePort(pod->spec(), target, protocol);
    all_declare = all_declare && !own.empty();
    declared.insert(own.begin(), own.end());
    if (number == 0 || (!k8s::IsString(target) && !Declares(*pod, number, protocol))) {
      without.push_back(pod->metadata().name());
    }
  }
  if (without.empty()) return;
  const std::string edit = view.Kubectl("edit service " + view.service.metadata().name());
  const std::string evidence = declared.empty()
                                   ? "the pods declare no ports"
                                   : fmt::format("the pods declare {}", fmt::join(declared, ", "));
  if (k8s::IsString(target)) {
    out.push_back({"NamedPortMissing",
                   fmt::format("port {} leads to port \"{}\", which pod {} does not have", PortText(port),
                               text, fmt::join(without, ", ")),
                   {evidence},
                   {edit}});
  } else if (all_declare && without.size() == ready.size()) {
    // Declarations bind nothing: a pod that declares none may listen everywhere.
    out.push_back({"TargetPortUndeclared",
                   fmt::format("port {} leads to port {}, which no container declares", PortText(port), text),
                   {evidence},
                   {edit, view.Kubectl("exec " + ready[0]->metadata().name() + " -- netstat -ltn")}});
  }
}

bool Admits(const networkingv1::NetworkPolicyPort& rule, const corev1::Pod& pod, int32_t number,
            const std::string& protocol) {
  if (ProtocolOf(rule.protocol()) != protocol) return false;
  if (!rule.has_port()) return true;
  const int32_t first = k8s::ResolvePort(pod.spec(), rule.port(), protocol);
  return first != 0 && first <= number && number <= std::max(first, rule.end_port());
}

struct Verdict {
  std::vector<std::string> policies;  // that select the pod, for ingress
  bool open = false;                  // a rule admits the port from everywhere
  bool some = false;                  // a rule admits the port from somewhere
};

Verdict JudgePolicy(const ServiceHealthView& view, const corev1::Pod& pod, int32_t number,
                    const std::string& protocol) {
  Verdict out;
  for (const networkingv1::NetworkPolicy& policy : view.policies) {
    const auto& types = policy.spec().policy_types();
    if (!types.empty() && std::find(types.begin(), types.end(), "Ingress") == types.end()) continue;
    const Result<api::LabelSelector> selector = api::LabelSelector::From(policy.spec().pod_selector());
    if (!selector || !selector->Matches(pod.metadata().labels())) continue;
    out.policies.push_back(policy.metadata().name());
    for (const auto& rule : policy.spec().ingress()) {
      const bool fits = rule.ports().empty() ||
                        std::any_of(rule.ports().begin(), rule.ports().end(),
                                    [&](const auto& one) { return Admits(one, pod, number, protocol); });
      out.some = out.some || fits;
      out.open = out.open || (fits && rule.from().empty());
    }
  }
  return out;
}

}  // namespace

void JudgePorts(const ServiceHealthView& view, const std::vector<const corev1::Pod*>& ready,
                std::vector<Problem>& out) {
  if (ready.empty()) return;
  for (const corev1::ServicePort& port : view.service.spec().ports()) JudgePort(view, port, ready, out);
}

void JudgePolicies(const ServiceHealthView& view, const std::vector<const corev1::Pod*>& ready,
                   WhyReport& report) {
  for (const corev1::ServicePort& port : view.service.spec().ports()) {
    const std::string protocol = ProtocolOf(port.protocol());
    std::set<std::string> denying, limiting;
    std::vector<std::string> denied;
    std::string example;
    for (const corev1::Pod* pod : ready) {
      if (pod->spec().host_network()) continue;  // no policy isolates it
      const int32_t number = k8s::ResolvePort(pod->spec(), TargetOf(port), protocol);
      if (number == 0) continue;
      const Verdict verdict = JudgePolicy(view, *pod, number, protocol);
      if (verdict.policies.empty() || verdict.open) continue;
      if (verdict.some) {
        limiting.insert(verdict.policies.begin(), verdict.policies.end());
        continue;
      }
      denying.insert(verdict.policies.begin(), verdict.policies.end());
      denied.push_back(pod->metadata().name());
      example = fmt::format("{}/{}:{}", pod->metadata().namespace_(), pod->metadata().name(), number);
    }
    if (!denied.empty()) {
      report.problems.push_back({"PolicyDenies",
                                 fmt::format("no NetworkPolicy lets connections to port {} of pod {} in",
                                             PortText(port), fmt::join(denied, ", ")),
                                 {fmt::format("selected by NetworkPolicy {}", fmt::join(denying, ", "))},
                                 {"nodectl why connection NAMESPACE/CLIENT " + example,
                                  view.Kubectl("get networkpolicies -o yaml")}});
    }
    if (!limiting.empty()) {
      report.notes.push_back(
          fmt::format("NetworkPolicy {} admits only some clients to port {}: nodectl why connection "
                      "NAMESPACE/CLIENT NAMESPACE/POD:PORT tells whether one of them",
                      fmt::join(limiting, ", "), PortText(port)));
    }
  }
}

}  // namespace keelson::ctl
