#include "ctl/why/service/service_judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/ip.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

constexpr size_t kMostNames = 5;

// A few names, and how many more there are.
std::string Names(const std::vector<std::string>& names) {
  if (names.size() <= kMostNames) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kMostNames, ", "),
                     names.size() - kMostNames);
}

std::string SelectorText(const corev1::Service& service) {
  const std::map<std::string, std::string> sorted(service.spec().selector().begin(),
                                                  service.spec().selector().end());
  std::string out;
  for (const auto& [key, value] : sorted) out += (out.empty() ? "" : ",") + key + "=" + value;
  return out;
}

struct Counts {
  int ready = 0, all = 0;
  std::set<std::string> nodes;  // with a ready endpoint
};

Counts Count(const ServiceHealthView& view) {
  Counts out;
  for (const auto& slice : view.slices) {
    for (const auto& endpoint : slice.endpoints()) {
      ++out.all;
      if (endpoint.conditions().has_ready() && !endpoint.conditions().ready()) continue;
      ++out.ready;
      if (!endpoint.node_name().empty()) out.nodes.insert(endpoint.node_name());
    }
  }
  return out;
}

// Pods that lack one label of the selector only.
std::vector<std::string> NearMisses(const ServiceHealthView& view) {
  std::vector<std::string> out;
  for (const corev1::Pod& pod : view.pods) {
    std::string wrong;
    int misses = 0;
    for (const auto& [key, value] : view.service.spec().selector()) {
      const auto own = pod.metadata().labels().find(key);
      if (own != pod.metadata().labels().end() && own->second == value) continue;
      ++misses;
      wrong = own == pod.metadata().labels().end()
                  ? fmt::format("has no label {}", key)
                  : fmt::format("has {}={}, not {}", key, own->second, value);
    }
    if (misses != 1 || out.size() == kMostNames) continue;
    if (view.service.spec().selector().size() == 1 && wrong.starts_with("has no")) continue;
    out.push_back("pod " + pod.metadata().name() + " " + wrong);
  }
  return out;
}

void JudgeExternalName(const ServiceHealthView& view, WhyReport& report) {
  const std::string& target = view.service.spec().external_name();
  if (IpAddress::Parse(target)) {
    report.problems.push_back({"ExternalNameIsAddress",
                               "externalName " + target +
                                   " is an address: DNS has no name to send "
                                   "clients to",
                               {},
                               {view.Kubectl("edit service " + view.service.metadata().name())}});
  }
  report.notes.push_back("ExternalName: DNS sends clients to " + target +
                         "; ports and endpoints play no part");
}

void JudgePods(const ServiceHealthView& view, const std::vector<const corev1::Pod*>& selected,
               const std::vector<const corev1::Pod*>& ready, std::vector<Problem>& out) {
  const std::string& ns = view.service.metadata().namespace_();
  if (selected.empty()) {
    Problem problem{"SelectorMatchesNothing",
                    "no pod of namespace " + ns + " has the labels " + SelectorText(view.service),
                    NearMisses(view),
                    {view.Kubectl("get pods --show-labels")}};
    return out.push_back(std::move(problem));
  }
  if (!ready.empty() || view.service.spec().publish_not_ready_addresses()) return;
  Problem problem{"PodsNotReady",
                  fmt::format("none of the {} pods behind the Service is Ready", selected.size())};
  for (const corev1::Pod* pod : selected) {
    if (problem.evidence.size() == kMostNames) break;
    const corev1::PodCondition* condition = k8s::FindCondition(pod->status(), k8s::kPodReady);
    problem.evidence.push_back(
        fmt::format("pod {} is {}{}{}", pod->metadata().name(), pod->status().phase(),
                    k8s::IsTerminating(*pod) ? ", being deleted" : "",
                    condition && !condition->message().empty() ? ": " + condition->message() : ""));
  }
  problem.next.push_back("nodectl why pod " + ns + "/" + selected[0]->metadata().name());
  out.push_back(std::move(problem));
}

void JudgeEndpoints(const ServiceHealthView& view, const Counts& counts, bool ready_pods,
                    std::vector<Problem>& out) {
  const std::string& name = view.service.metadata().name();
  if (view.service.spec().selector().empty()) {
    if (counts.ready > 0) return;
    out.push_back({"NoSelector",
                   "the Service has no selector, and no EndpointSlice gives it endpoints",
                   {},
                   {view.Kubectl("get endpointslices -l kubernetes.io/service-name=" + name)}});
  } else if (ready_pods && counts.ready == 0 && out.empty()) {
    out.push_back(
        {"NoEndpoints",
         "pods are Ready, and the Service's EndpointSlices do not have them",
         {fmt::format("{} EndpointSlices with {} endpoints", view.slices.size(), counts.all),
          "the endpoint slice controller is behind, or the pods have no address of the Service's families"},
         {view.Kubectl("get endpointslices -l kubernetes.io/service-name=" + name + " -o yaml")}});
  }
}

void JudgeLocal(const ServiceHealthView& view, const Counts& counts, WhyReport& report) {
  if (counts.ready == 0 || counts.nodes.empty()) return;
  std::vector<std::string> without;
  for (const std::string& node : view.nodes) {
    if (counts.nodes.count(node) == 0) without.push_back(node);
  }
  if (without.empty()) return;
  const std::string where = Names(without);
  const std::vector<std::string> next = {view.Kubectl(
      "get endpointslices -l kubernetes.io/service-name=" + view.service.metadata().name() + " -o wide")};
  const std::vector<std::string> evidence = {
      fmt::format("nodes with a ready endpoint: {}", Names({counts.nodes.begin(), counts.nodes.end()}))};
  const corev1::ServiceSpec& spec = view.service.spec();
  if (spec.internal_traffic_policy() == "Local") {
    report.problems.push_back({"NoLocalEndpoints",
                               "internalTrafficPolicy is Local: pods on node " + where + " get no answer",
                               evidence, next});
  }
  if (spec.external_traffic_policy() != "Local") return;
  const std::string text =
      "externalTrafficPolicy is Local: clients from outside get no answer at node " + where;
  if (spec.type() == "NodePort") {
    report.problems.push_back({"NoLocalEndpoints", text, evidence, next});
  } else {
    report.notes.push_back(text + "; the load balancer's health checks have to leave it out");
  }
}

void JudgeLoadBalancer(const ServiceHealthView& view, std::vector<Problem>& out) {
  const corev1::ServiceSpec& spec = view.service.spec();
  if (spec.type() != "LoadBalancer" || !view.service.status().load_balancer().ingress().empty()) return;
  Problem problem{"NoLoadBalancer", "no load balancer has given the Service an address"};
  if (!spec.load_balancer_class().empty()) {
    problem.message += "; one of class " + spec.load_balancer_class() + " has to";
  }
  if (!view.events.empty()) problem.evidence.push_back(EventText(view.events.back()));
  problem.next = {view.Kubectl("describe service " + view.service.metadata().name())};
  out.push_back(std::move(problem));
}

void JudgeDeletion(const ServiceHealthView& view, std::vector<Problem>& out) {
  const metav1::ObjectMeta& meta = view.service.metadata();
  if (!meta.has_deletion_timestamp()) return;
  for (const std::string& finalizer : meta.finalizers()) {
    out.push_back({"Finalizer",
                   "the Service is deleted when its finalizer " + finalizer + " is gone",
                   {},
                   {view.Kubectl("get service " + meta.name() + " -o jsonpath='{.metadata.finalizers}'")}});
  }
}

void AddNotes(const ServiceHealthView& view, WhyReport& report) {
  const corev1::ServiceSpec& spec = view.service.spec();
  const metav1::ObjectMeta& meta = view.service.metadata();
  if (spec.cluster_ip() == "None") {
    report.notes.emplace_back(
        "headless: DNS gives clients the endpoints' own addresses; no packet is translated");
  }
  if (spec.session_affinity() == "ClientIP") {
    report.notes.push_back(
        fmt::format("sessionAffinity is ClientIP: a client stays with one endpoint for {} s",
                    spec.session_affinity_config().client_ip().timeout_seconds()));
  }
  report.notes.push_back(fmt::format("DNS name: {}.{}.svc", meta.name(), meta.namespace_()));
  if (report.problems.empty()) {
    report.notes.push_back("the API has no reason against an answer; nodectl trace service " + view.Name() +
                           " asks a node's kernel");
  }
}

}  // namespace

WhyReport JudgeService(const ServiceHealthView& view) {
  const corev1::ServiceSpec& spec = view.service.spec();
  const std::vector<const corev1::Pod*> selected = view.Selected();
  std::vector<const corev1::Pod*> ready;
  std::copy_if(selected.begin(), selected.end(), std::back_inserter(ready),
               [](const corev1::Pod* pod) { return k8s::IsReady(*pod) && !k8s::IsTerminating(*pod); });
  const Counts counts = Count(view);
  const std::string type = spec.type().empty() ? "ClusterIP" : spec.type();
  WhyReport report{fmt::format("{} Service {}", type, view.Name()),
                   {{"service", view.Name()},
                    {"type", type},
                    {"clusterIP", spec.cluster_ip()},
                    {"pods", selected.size()},
                    {"readyPods", ready.size()},
                    {"readyEndpoints", counts.ready}},
                   {}};
  if (!view.has_dns) {
    report.notes.emplace_back(
        "there is no Service kube-system/kube-dns: names of Services resolve only where DNS is set up in "
        "another way");
  }
  JudgeDeletion(view, report.problems);
  if (spec.type() == "ExternalName") {
    JudgeExternalName(view, report);
    return report;
  }
  report.headline += fmt::format(" at {} has {} ready endpoints",
                                 spec.cluster_ip().empty() ? "no address" : spec.cluster_ip(), counts.ready);
  if (!spec.selector().empty()) JudgePods(view, selected, ready, report.problems);
  JudgePorts(view, ready, report.problems);
  JudgeEndpoints(view, counts, !ready.empty(), report.problems);
  JudgePolicies(view, ready, report);
  JudgeLocal(view, counts, report);
  JudgeLoadBalancer(view, report.problems);
  AddNotes(view, report);
  return report;
}

}  // namespace keelson::ctl
