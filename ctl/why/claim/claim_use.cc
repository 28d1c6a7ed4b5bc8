#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <boost/json/array.hpp>

#include "ctl/why/claim/claim_judge.h"
#include "lib/api/quantity.h"
#include "lib/k8s/pods/node_affinity.h"

namespace keelson::ctl {

namespace {

constexpr char kProtection[] = "kubernetes.io/pvc-protection";

void JudgeDeletion(const ClaimView& view, std::vector<Problem>& out) {
  if (!view.claim.metadata().has_deletion_timestamp()) return;
  const auto& finalizers = view.claim.metadata().finalizers();
  const std::vector<std::string> pods = view.RunningPods();
  if (std::find(finalizers.begin(), finalizers.end(), kProtection) != finalizers.end() && !pods.empty()) {
    out.push_back({"InUse", fmt::format("the claim is deleted when no pod uses it any more: {}",
                                        fmt::join(pods, ", "))});
  }
  for (const std::string& finalizer : finalizers) {
    if (finalizer == kProtection && !pods.empty()) continue;
    out.push_back({"Finalizer", "the claim is deleted when its finalizer " + finalizer + " is gone"});
  }
}

const api::resource::Quantity* StorageOf(
    const google::protobuf::Map<std::string, api::resource::Quantity>& map) {
  auto found = map.find("storage");
  return found == map.end() ? nullptr : &found->second;
}

void JudgeExpansion(const ClaimView& view, std::vector<Problem>& out) {
  const auto& status = view.claim.status();
  const auto* wanted = StorageOf(view.claim.spec().resources().requests());
  const auto* has = StorageOf(status.capacity());
  if (!wanted || !has || api::Amount::Of(*wanted) <= api::Amount::Of(*has)) return;
  const std::string sizes =
      fmt::format("{} are wanted, the volume has {}", api::Amount::Of(*wanted).ToString(),
                  api::Amount::Of(*has).ToString());
  const size_t before = out.size();
  auto phase = status.allocated_resource_statuses().find("storage");
  const std::string state = phase == status.allocated_resource_statuses().end() ? "" : phase->second;
  for (const auto& condition : status.conditions()) {
    if (condition.status() != "True") continue;
    if (condition.type() == "ControllerResizeError" || condition.type() == "NodeResizeError") {
      out.push_back({"ExpansionFailed", sizes + ": " + condition.message()});
    } else if (condition.type() == "FileSystemResizePending") {
      out.push_back({"ExpansionPending", sizes + ": the node grows it once a pod uses it"});
    }
  }
  if (const corev1::Event* event = view.LastOfClaim({"VolumeResizeFailed", "VolumeResizeSuccessful"});
      out.size() == before && event && event->reason() == "VolumeResizeFailed") {
    out.push_back({"ExpansionFailed", sizes + ": " + event->message()});
  }
  if (out.size() > before) return;
  out.push_back({"ExpansionPending",
                 sizes + (state.empty() ? ": no resizer has taken it up" : ": its state is " + state)});
}

void JudgeModification(const ClaimView& view, std::vector<Problem>& out) {
  const auto& status = view.claim.status();
  if (!status.has_modify_volume_status()) return;
  const auto& modify = status.modify_volume_status();
  out.push_back(
      {modify.status() == "Infeasible" ? "ModificationFailed" : "ModificationPending",
       "VolumeAttributesClass " + modify.target_volume_attributes_class_name() + " is " + modify.status()});
}

void JudgeNodes(const ClaimView& view, std::vector<Problem>& out) {
  if (!view.volume->spec().has_node_affinity() || !view.volume->spec().node_affinity().has_required()) return;
  const auto& required = view.volume->spec().node_affinity().required();
  std::vector<std::string> reach;
  bool ready = false;
  for (const corev1::Node& node : view.nodes) {
    if (!k8s::MatchesNodeSelector(required, node)) continue;
    reach.push_back(node.metadata().name());
    ready =
        ready || std::any_of(node.status().conditions().begin(), node.status().conditions().end(),
                             [](const auto& one) { return one.type() == "Ready" && one.status() == "True"; });
  }
  const std::string& name = view.volume->metadata().name();
  if (reach.empty()) {
    out.push_back(
        {"NodeGone", "no node has the labels from which PersistentVolume " + name + " can be reached"});
  } else if (!ready) {
    out.push_back(
        {"NodeNotReady", fmt::format("PersistentVolume {} is reached from node {} only, which is not Ready",
                                     name, fmt::join(reach, ", "))});
  }
}

void JudgeAttachments(const ClaimView& view, std::vector<Problem>& out) {
  for (const storagev1::VolumeAttachment& one : view.attachments) {
    const std::string& node = one.spec().node_name();
    const bool leaves = one.metadata().has_deletion_timestamp();
    if (leaves && !one.status().detach_error().message().empty()) {
      out.push_back({"DetachFailed", "from node " + node + ": " + one.status().detach_error().message()});
    } else if (!leaves && !one.status().attached()) {
      const std::string& error = one.status().attach_error().message();
      out.push_back(
          {error.empty() ? "AttachPending" : "AttachFailed",
           "to node " + node + ": " +
               (error.empty() ? "attacher " + one.spec().attacher() + " has not answered" : error)});
    }
  }
}

void JudgePods(const ClaimView& view, std::vector<Problem>& out) {
  for (const corev1::Pod& pod : view.pods) {
    if (pod.status().phase() != "Pending") continue;
    const std::string& name = pod.metadata().name();
    const corev1::Event* event = view.LastOfPod(
        name, {"FailedMount", "FailedAttachVolume", "FailedMapVolume", "Started", "SuccessfulMountVolume"});
    if (!event || event->type() != "Warning") continue;
    out.push_back({event->reason() == "FailedAttachVolume" ? "AttachFailed" : "MountFailed",
                   "pod " + name + ": " + event->message()});
  }
}

void JudgeVolume(const ClaimView& view, std::vector<Problem>& out) {
  const auto& status = view.volume->status();
  if (status.phase() == "Failed") {
    out.push_back(
        {"VolumeFailed", "PersistentVolume " + view.volume->metadata().name() + ": " + status.message()});
  }
  if (view.volume->metadata().has_deletion_timestamp()) {
    out.push_back({"VolumeDeleted", "PersistentVolume " + view.volume->metadata().name() +
                                        " is deleted: it ends when the claim does"});
  }
  if (const corev1::Event* event = view.LastOfClaim({"VolumeConditionAbnormal", "VolumeConditionNormal"});
      event && event->reason() == "VolumeConditionAbnormal") {
    out.push_back({"VolumeAbnormal", event->message()});
  }
}

}  // namespace

std::vector<Problem> JudgeUse(const ClaimView& view) {
  std::vector<Problem> out;
  if (view.volume) {
    JudgeVolume(view, out);
    JudgeNodes(view, out);
  }
  JudgeAttachments(view, out);
  JudgePods(view, out);
  JudgeExpansion(view, out);
  JudgeModification(view, out);
  return out;
}

namespace {

std::string Headline(const ClaimView& view) {
  const std::string &phase = view.claim.status().phase(), &volume = view.claim.spec().volume_name();
  const std::string own = ClassNameOf(view.claim).value_or("");
  std::string out = fmt::format("Claim {} is {}", view.Name(), phase.empty() ? "new" : phase);
  if (!own.empty()) out += ", of class " + own;
  if (!volume.empty()) out += ", with volume " + volume;
  const std::vector<std::string> pods = view.RunningPods();
  if (!pods.empty()) out += fmt::format(", used by pod {}", fmt::join(pods, ", "));
  return out;
}

}  // namespace

WhyReport JudgeClaim(const ClaimView& view) {
  const std::string &phase = view.claim.status().phase(), &volume = view.claim.spec().volume_name();
  const std::vector<std::string> pods = view.RunningPods();
  WhyReport report{Headline(view),
                   {{"claim", view.Name()},
                    {"phase", phase},
                    {"storageClass", ClassNameOf(view.claim).value_or("")},
                    {"volume", volume},
                    {"pods", boost::json::array(pods.begin(), pods.end())}},
                   {}};
  if (phase == "Lost") {
    report.problems.push_back({"VolumeLost", "PersistentVolume " + volume +
                                                 ", to which the claim was bound, is gone with its data; "
                                                 "only a new claim gets a new volume"});
  } else if (phase == "Bound") {
    if (!view.volume) {
      report.problems.push_back({"VolumeMissing", "PersistentVolume " + volume + " does not exist"});
    }
    for (Problem& problem : JudgeUse(view)) report.problems.push_back(std::move(problem));
  } else {
    report.problems = JudgeBinding(view);
  }
  JudgeDeletion(view, report.problems);
  for (Problem& problem : report.problems) {
    if (problem.next.empty()) problem.next = NextForClaim(view, problem.reason);
  }
  return report;
}

}  // namespace keelson::ctl
