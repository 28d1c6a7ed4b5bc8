#include "ctl/why/node/node_judge.h"

#include <fmt/format.h>

#include <array>

#include "ctl/output.h"
#include "lib/api/meta.h"
#include "lib/base/text.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

using std::chrono::seconds;

constexpr seconds kLeaseDuration{40};  // the kubelet's default
constexpr char kOutOfService[] = "node.kubernetes.io/out-of-service";
constexpr char kUninitialized[] = "node.cloudprovider.kubernetes.io/uninitialized";

seconds Age(const NodeHealthView& view, WallTime since) {
  return std::chrono::duration_cast<seconds>(view.now - since);
}

std::string ConditionLine(const corev1::NodeCondition& condition) {
  return fmt::format("{} is {}, {}: {}", condition.type(), condition.status(), condition.reason(),
                     condition.message());
}

const corev1::NodeCondition* Ready(const NodeHealthView& view) {
  return k8s::FindCondition(view.node.status(), "Ready");
}

std::string On(const NodeHealthView& view, const std::string& command) {
  return command + "   # on node " + view.node.metadata().name();
}

// What the kubelet says in condition Ready, in upstream's words, in lower case.
struct Words {
  const char* words;
  const char* reason;
  const char* sentence;
  const char* next;
};
constexpr std::array<Words, 7> kNotReady{{
    {"networkready=false", "NetworkPluginNotReady", "the network plugin (CNI) of the runtime is not ready",
     "ls -l /etc/cni/net.d /opt/cni/bin"},
    {"cni plugin not initialized", "NetworkPluginNotReady",
     "the network plugin (CNI) of the runtime is not ready", "ls -l /etc/cni/net.d /opt/cni/bin"},
    {"pleg is not healthy", "RuntimeNotReady", "the container runtime answers too slowly", "nodectl ps"},
    {"container runtime", "RuntimeNotReady", "the kubelet gets no answer from the container runtime",
     "systemctl status containerd; nodectl info"},
    {"node is shutting down", "NodeShutdown", "the machine is shutting down",
     "journalctl -u systemd-logind -n 20"},
    {"csinode is not yet initialized", "CsiNodeNotReady", "the kubelet has yet to write its CSINode",
     "journalctl -u kubelet -n 50"},
    {"", "NotReady", "the kubelet says that it is not ready", "journalctl -u kubelet -n 50"},
}};

void JudgeKubelet(const NodeHealthView& view, std::vector<Problem>& out) {
  const corev1::NodeCondition* ready = Ready(view);
  if (ready && ready->status() == "False") {
    const std::string text = Lower(ready->message());
    for (const Words& one : kNotReady) {
      if (text.find(one.words) == std::string::npos) continue;
      Problem problem{one.reason, one.sentence, {ConditionLine(*ready)}, {On(view, one.next)}};
      if (view.machine && problem.reason == "NetworkPluginNotReady" &&
          view.machine->cni_configuration.empty()) {
        problem.evidence.emplace_back("/etc/cni/net.d has no configuration of a network");
      }
      return out.push_back(std::move(problem));
    }
  }
  std::vector<std::string> evidence;
  if (ready) evidence.push_back(ConditionLine(*ready));
  if (view.machine && !view.machine->kubelet_runs) {
    evidence.emplace_back("no process kubelet runs on this machine");
  }
  const std::vector<std::string> next = {On(view, "systemctl status kubelet"),
                                         On(view, "journalctl -u kubelet -n 50")};
  const std::string& name = view.node.metadata().name();
  if (!view.lease) {
    if (ready && ready->status() == "True") return;
    return out.push_back({"KubeletSilent", "the kubelet has no Lease: it has not run since the node was made",
                          evidence, next});
  }
  const WallTime renewed = api::FromMicroTime(view.lease->spec().renew_time());
  const seconds age = Age(view, renewed);
  const auto given = view.lease->spec().lease_duration_seconds();
  const seconds limit = given > 0 ? seconds(given) : kLeaseDuration;
  if (age > limit) {
    evidence.insert(evidence.begin(),
                    fmt::format("Lease kube-node-lease/{} was renewed {} ago; it lasts for {} s", name,
                                ShortDuration(age), limit.count()));
    return out.push_back({"KubeletSilent",
                          "the kubelet has not been heard of for " + ShortDuration(age) +
                              ": it, the machine or the way to the API server is down",
                          evidence, next});
  }
  if (ready && ready->status() == "True") return;
  evidence.push_back(
      fmt::format("its Lease was renewed {} ago: the kubelet reaches the API server", ShortDuration(age)));
  out.push_back({"NotReady",
                 ready ? "the state of the node is unknown" : "the kubelet has not told its state yet",
                 evidence, next});
}

void JudgePressure(const NodeHealthView& view, std::vector<Problem>& out) {
  struct Pressure {
    const char* type;
    const char* sentence;
    const char* next;
    std::vector<std::string> events;  // that belong to it
  };
  const std::array<Pressure, 4> kTypes{{
      {"MemoryPressure",
       "memory is short: the kubelet evicts pods, and refuses those of class BestEffort",
       "kubectl top pods -A --sort-by=memory",
       {"EvictionThresholdMet", "SystemOOM"}},
      {"DiskPressure",
       "disk space is short: the kubelet evicts pods, removes images and refuses pods",
       "nodectl imagefsinfo",
       {"EvictionThresholdMet", "FreeDiskSpaceFailed"}},
      {"PIDPressure",
       "process ids are short: the kubelet evicts pods and refuses pods",
       "nodectl stats",
       {"EvictionThresholdMet"}},
      {"NetworkUnavailable",
       "the node's network is not set up yet",
       "kubectl -n kube-system get pods -o wide",
       {}},
  }};
  for (const Pressure& one : kTypes) {
    const corev1::NodeCondition* condition = k8s::FindCondition(view.node.status(), one.type);
    if (!condition || condition->status() != "True") continue;
    const std::string command = one.next;
    Problem problem{one.type,
                    one.sentence,
                    {ConditionLine(*condition)},
                    {command.starts_with("nodectl") ? On(view, command) : command}};
    if (const corev1::Event* event = view.Last(one.events)) {
      problem.evidence.push_back(EventText(*event));
    }
    out.push_back(std::move(problem));
  }
}

void JudgeCertificate(const NodeHealthView& view, std::vector<Problem>& out) {
  if (!view.machine || !view.machine->not_after) return;
  const seconds left = std::chrono::duration_cast<seconds>(*view.machine->not_after - view.now);
  const std::string file = view.machine->certificate;
  if (left.count() <= 0) {
    out.push_back({"CertificateExpired",
                   "the kubelet's certificate expired " + ShortDuration(-left) +
                       " ago: the API server "
                       "does not let it in",
                   {file},
                   {On(view, "nodectl reset"), On(view,
                                                  "nodectl join HOST:PORT --token TOKEN "
                                                  "--discovery-token-ca-cert-hash HASH")}});
  } else if (left <
             std::chrono::duration_cast<seconds>(*view.machine->not_after - view.machine->not_before) / 10) {
    out.push_back({"CertificateExpiring",
                   "the kubelet's certificate expires in " + ShortDuration(left) +
                       ", and should have been renewed before",
                   {file},
                   {"kubectl get csr"}});
  }
}

// What keeps new pods away: a cordon, and taints. Taints of conditions are left out: their conditions are problems already.
void JudgeTaints(const NodeHealthView& view, WhyReport& report) {
  const std::string& name = view.node.metadata().name();
  if (view.node.spec().unschedulable()) {
    report.problems.push_back({"Cordoned",
                               "the node takes no new pods: it is cordoned",
                               {"spec.unschedulable: true"},
                               {"kubectl uncordon " + name}});
  }
  for (const corev1::Taint& taint : view.node.spec().taints()) {
    const std::string& key = taint.key();
    const std::string text =
        fmt::format("{}{}{}:{}", key, taint.value().empty() ? "" : "=", taint.value(), taint.effect());
    if (key == kOutOfService) {
      report.problems.push_back(
          {"OutOfService",
           "an administrator has declared the node out of service: its pods are deleted",
           {text},
           {"kubectl taint node " + name + " " + key + "-"}});
    } else if (key == kUninitialized) {
      report.problems.push_back({"CloudProviderUninitialized",
                                 "the node waits for a cloud controller manager",
                                 {text},
                                 {"kubectl -n kube-system get pods"}});
    } else if (!key.starts_with("node.kubernetes.io/")) {
      report.notes.push_back("taint " + text + ": pods without a toleration stay away");
    }
  }
}

void JudgeDeletion(const NodeHealthView& view, std::vector<Problem>& out) {
  const metav1::ObjectMeta& meta = view.node.metadata();
  if (!meta.has_deletion_timestamp()) return;
  for (const std::string& finalizer : meta.finalizers()) {
    out.push_back({"Finalizer",
                   "the node is deleted when its finalizer " + finalizer + " is gone",
                   {},
                   {"kubectl get node " + meta.name() + " -o jsonpath='{.metadata.finalizers}'"}});
  }
}

}  // namespace

WhyReport JudgeNode(const NodeHealthView& view) {
  const corev1::NodeCondition* ready = Ready(view);
  const std::string& name = view.node.metadata().name();
  const bool is_ready = ready && ready->status() == "True";
  WhyReport report{"Node " + name + " is " + (is_ready ? "Ready" : "not Ready"),
                   {{"node", name},
                    {"ready", ready ? ready->status() : "Unknown"},
                    {"schedulable", !view.node.spec().unschedulable()}},
                   {}};
  if (ready && ready->has_last_transition_time()) {
    report.headline += ", for " + ShortDuration(Age(view, api::FromTime(ready->last_transition_time())));
  }
  if (view.lease) {
    const seconds age = Age(view, api::FromMicroTime(view.lease->spec().renew_time()));
    report.facts["leaseAgeSeconds"] = age.count();
  }
  JudgeCertificate(view, report.problems);
  JudgeKubelet(view, report.problems);
  JudgePressure(view, report.problems);
  JudgeTaints(view, report);
  JudgeDeletion(view, report.problems);
  if (!is_ready && view.machine && !view.machine->certificate_problem.empty()) {
    report.notes.push_back("the kubelet's certificate cannot be read: " + view.machine->certificate_problem);
  }
  return report;
}

}  // namespace keelson::ctl
