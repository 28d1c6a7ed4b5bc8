#include "ctl/why/pod/pod_judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ctl/output.h"
#include "ctl/why/pod/pod_scheduling.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

std::string Headline(const PodView& view) {
  const corev1::Pod& pod = view.pod;
  const corev1::PodStatus& status = pod.status();
  std::string out = fmt::format("Pod {} is {}", view.Name(), status.phase().empty() ? "new" : status.phase());
  if (k8s::IsTerminating(pod)) out += " and being deleted";
  out += pod.spec().node_name().empty() ? ", without a node" : ", on node " + pod.spec().node_name();
  int32_t restarts = 0, ready = 0;
  for (const auto& one : status.container_statuses()) {
    restarts += one.restart_count();
    ready += one.ready() ? 1 : 0;
  }
  if (status.phase() == "Running") out += fmt::format(", {}/{} ready", ready, pod.spec().containers_size());
  if (restarts > 0) out += fmt::format(", {} restart(s)", restarts);
  return out;
}

void JudgeGates(const PodView& view, std::vector<Problem>& out) {
  std::vector<std::string> names;
  for (const auto& gate : view.pod.spec().scheduling_gates()) names.push_back(gate.name());
  out.push_back({"SchedulingGated",
                 fmt::format("waiting for scheduling gates: {}", fmt::join(names, ", ")),
                 {"a controller, or an administrator, removes each gate"},
                 {view.Kubectl(fmt::format("get pod {} -o jsonpath='{{.spec.schedulingGates}}'",
                                           view.pod.metadata().name()))}});
}

void JudgeDeletion(const PodView& view, std::vector<Problem>& out) {
  const metav1::ObjectMeta& meta = view.pod.metadata();
  const std::string& node = view.pod.spec().node_name();
  const std::string force = view.Kubectl("delete pod " + meta.name() + " --force --grace-period=0");
  for (const std::string& finalizer : meta.finalizers()) {
    out.push_back(
        {"Finalizer",
         "the pod is deleted when its finalizer " + finalizer + " is gone",
         {},
         {view.Kubectl(fmt::format("get pod {} -o jsonpath='{{.metadata.finalizers}}'", meta.name()))}});
  }
  if (!node.empty() && !view.node) return;  // JudgeNodeOfPod() says so
  if ((k8s::IsTerminal(view.pod) || node.empty()) && !meta.finalizers().empty()) return;
  const auto over =
      std::chrono::duration_cast<std::chrono::seconds>(view.now - api::FromTime(meta.deletion_timestamp()));
  if (over.count() <= 0) {
    out.push_back({"TerminationGracePeriod",
                   fmt::format("its containers have {} more to end by themselves", ShortDuration(-over)),
                   {fmt::format("deletionGracePeriodSeconds: {}", meta.deletion_grace_period_seconds())},
                   {view.Kubectl("get pod " + meta.name() + " --watch")}});
    return;
  }
  Problem stuck{"Terminating",
                fmt::format("the grace period ended {} ago, and the kubelet of node {} has not ended the pod",
                            ShortDuration(over), node.empty() ? "?" : node)};
  if (const corev1::Event* event =
          view.Last({"FailedKillPod", "FailedPreStopHook", "FailedUnmount", "Killing"})) {
    stuck.evidence.push_back(EventText(*event));
  }
  stuck.next = {"nodectl why node " + node, "journalctl -u kubelet -n 50   # on node " + node, force};
  out.push_back(std::move(stuck));
}

// The reason of a failed pod, as the kubelet or the controller that ended it writes it to status.reason.
void JudgeFailure(const PodView& view, std::vector<Problem>& out) {
  const corev1::PodStatus& status = view.pod.status();
  const std::string& reason = status.reason();
  const corev1::PodCondition* disruption = k8s::FindCondition(status, k8s::kDisruptionTarget);
  const std::string& node = view.pod.spec().node_name();
  std::vector<std::string> evidence;
  if (!reason.empty()) evidence.push_back(reason + ": " + status.message());
  if (disruption && disruption->status() == "True") {
    evidence.push_back("DisruptionTarget " + disruption->reason() + ": " + disruption->message());
  }
  const std::vector<std::string> node_next = {"nodectl why node " + node};
  if (reason == "Evicted") {
    out.push_back(
        {"Evicted", "the kubelet has evicted the pod: its node ran short of resources", evidence, node_next});
  } else if (disruption && disruption->reason() == "PreemptionByScheduler") {
    out.push_back({"Preempted",
                   "the pod has made room for one of higher priority",
                   evidence,
                   {view.Kubectl("get events --field-selector reason=Preempted")}});
  } else if (disruption && disruption->reason() == "DeletionByTaintManager") {
    out.push_back({"TaintEviction", "a taint of node " + node + " has evicted the pod", evidence, node_next});
  } else if (reason == "DeadlineExceeded") {
    out.push_back(
        {"DeadlineExceeded", "the pod has run for longer than activeDeadlineSeconds", evidence, {}});
  } else if (reason == "NodeLost" || reason == "NodeShutdown" || reason == "Terminated") {
    out.push_back({"NodeShutdown", "node " + node + " went away or was shut down", evidence, node_next});
  } else if (!reason.empty() && status.container_statuses().empty()) {
    out.push_back(
        {"AdmissionRefused", "the kubelet of node " + node + " has refused the pod", evidence, node_next});
  } else if (!evidence.empty()) {
    out.push_back({"Failed", "the pod has failed", evidence, {}});
  }
}

void JudgeCondition(const PodView& view, const corev1::PodCondition* scheduled, std::vector<Problem>& out) {
  const corev1::Event* event = view.Last({"FailedScheduling"});
  const std::string& message = scheduled && !scheduled->message().empty() ? scheduled->message()
                               : event                                    ? event->message()
                                                                          : "";
  if (message.empty()) {
    const std::string& name = view.pod.spec().scheduler_name();
    out.push_back({"NotScheduledYet",
                   "no scheduler has looked at the pod yet; it waits for " +
                       (name.empty() ? "default-scheduler" : name),
                   {},
                   {"kubectl -n kube-system get leases"}});
    return;
  }
  if (scheduled && scheduled->reason() == "SchedulerError") {
    out.push_back({"SchedulerError", "the scheduler fails at the pod", {message}, {}});
    return;
  }
  const int nodes = NodesOf(message);
  const bool none = nodes == 0 || message.find("no nodes available") != std::string::npos;
  Problem problem{none ? "NoNodes" : "Unschedulable",
                  none        ? "the cluster has no node that the scheduler could choose"
                  : nodes > 0 ? fmt::format("none of the {} nodes takes the pod", nodes)
                              : "the scheduler finds no node for the pod",
                  SchedulingReasons(message), NextForScheduling(message)};
  if (none) problem.next = {"kubectl get nodes"};
  out.push_back(std::move(problem));
}

}  // namespace

void JudgeEnd(const PodView& view, std::vector<Problem>& out) {
  if (k8s::IsTerminating(view.pod)) JudgeDeletion(view, out);
  if (view.pod.status().phase() == "Failed") JudgeFailure(view, out);
}

void JudgeScheduling(const PodView& view, std::vector<Problem>& out) {
  if (!view.pod.spec().node_name().empty()) return;
  if (view.pod.spec().scheduling_gates_size() > 0) return JudgeGates(view, out);
  const corev1::PodCondition* scheduled = k8s::FindCondition(view.pod.status(), k8s::kPodScheduled);
  if (view.scheduling) {
    Problem problem = JudgeSchedulingAnswer(*view.scheduling);
    if (scheduled && problem.next.empty()) problem.next = NextForScheduling(scheduled->message());
    if (problem.next.empty()) {
      problem.next.push_back(view.Kubectl("describe pod " + view.pod.metadata().name()));
    }
    out.push_back(std::move(problem));
  } else {
    JudgeCondition(view, scheduled, out);
  }
  if (const std::string& node = view.pod.status().nominated_node_name(); !node.empty()) {
    out.back().evidence.push_back("the scheduler makes room for it on node " + node);
  }
}

void JudgeNodeOfPod(const PodView& view, std::vector<Problem>& out) {
  const std::string& name = view.pod.spec().node_name();
  if (name.empty() || k8s::IsTerminal(view.pod)) return;
  if (!view.node) {
    out.push_back({"NodeGone",
                   "node " + name + ", on which the pod is, does not exist any more",
                   {},
                   {view.Kubectl("delete pod " + view.pod.metadata().name() + " --force --grace-period=0")}});
    return;
  }
  const corev1::NodeCondition* ready = k8s::FindCondition(view.node->status(), "Ready");
  if (ready && ready->status() == "True") return;
  std::vector<std::string> evidence;
  if (ready) {
    evidence.push_back(
        fmt::format("Ready is {}, {}: {}", ready->status(), ready->reason(), ready->message()));
  }
  out.push_back({"NodeNotReady",
                 "node " + name + ", on which the pod is, is not Ready",
                 std::move(evidence),
                 {"nodectl why node " + name}});
}

WhyReport JudgePod(const PodView& view) {
  WhyReport report{Headline(view),
                   {{"pod", view.Name()},
                    {"phase", view.pod.status().phase()},
                    {"node", view.pod.spec().node_name()},
                    {"deleted", k8s::IsTerminating(view.pod)}},
                   {}};
  if (view.scheduling) report.facts["scheduling"] = *view.scheduling;
  std::vector<Problem>& out = report.problems;
  JudgeNodeOfPod(view, out);
  JudgeEnd(view, out);
  if (k8s::IsTerminating(view.pod) || view.pod.status().phase() == "Succeeded") return report;
  if (view.pod.status().phase() != "Failed") {
    JudgeScheduling(view, out);
    JudgeStart(view, out);
  }
  JudgeContainers(view, out);
  if (!view.scheduler_silence.empty() && !out.empty() && out[0].reason == "Unschedulable") {
    report.notes.push_back("these are the reasons of the last attempt; " + view.scheduler_silence +
                           " (kube-controlplane --scheduler-debug-port opens it)");
  }
  return report;
}

}  // namespace keelson::ctl
