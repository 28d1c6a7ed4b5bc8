#include "ctl/upgrade/drain.h"

#include <algorithm>

#include "lib/api/duration.h"
#include "lib/api/proto/policy_v1.pb.h"
#include "lib/base/pause.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

constexpr std::chrono::seconds kPoll{1};

std::string KeyOf(const EvictedPod& pod) { return pod.ns + "/" + pod.name; }

const metav1::OwnerReference* ControllerOf(const corev1::Pod& pod) {
  for (const metav1::OwnerReference& owner : pod.metadata().owner_references()) {
    if (owner.controller()) return &owner;
  }
  return nullptr;
}

bool IsFinished(const corev1::Pod& pod) {
  return pod.status().phase() == "Succeeded" || pod.status().phase() == "Failed";
}

bool HasEmptyDir(const corev1::Pod& pod) {
  const auto& volumes = pod.spec().volumes();
  return std::any_of(volumes.begin(), volumes.end(),
                     [](const corev1::Volume& volume) { return volume.volume_source().has_empty_dir(); });
}

class Drain {
 public:
  Drain(const client::RestClient& api, std::vector<EvictedPod> pods, std::ostream& out)
      : api_(api), out_(out) {
    for (EvictedPod& pod : pods) pods_.push_back({std::move(pod), false, ""});
  }

  // One look at each pod that is left. True: none is.
  Result<bool> Step() {
    for (Left& left : pods_) {
      KEELSON_ASSIGN_OR_RETURN(const bool gone, left.evicted ? IsGone(left) : Evict(left));
      left.gone = gone;
    }
    std::erase_if(pods_, [](const Left& left) { return left.gone; });
    return pods_.empty();
  }

  std::string WhatIsLeft() const {
    std::vector<std::string> out;
    for (const Left& left : pods_) {
      out.push_back(KeyOf(left.pod) + (left.refusal.empty() ? " has not ended yet" : ": " + left.refusal));
    }
    return Join(out, "\n");
  }

 private:
  struct Left {
    EvictedPod pod;
    bool evicted = false;
    std::string refusal;
    bool gone = false;
  };

  // Whether the pod is gone. A refusal that may pass is printed once.
  Result<bool> Evict(Left& left) {
    api::policy::v1::Eviction eviction;
    eviction.mutable_metadata()->set_namespace_(left.pod.ns);
    eviction.mutable_metadata()->set_name(left.pod.name);
    eviction.mutable_delete_options()->mutable_preconditions()->set_uid(left.pod.uid);
    const auto done = api_.CreateSub(api::ResourceOf<corev1::Pod>(), left.pod.ns, left.pod.name, "eviction",
                                     eviction, nullptr);
    if (done) {
      left.evicted = true;
      left.refusal = "";
      out_ << "[upgrade/drain] Evicting pod " << KeyOf(left.pod) << "\n";
      return false;
    }
    const Error& error = done.error();
    if (error.Is(Code::kNotFound)) return true;
    // The pod has gone, and one of its name has come.
    if (error.Is(Code::kConflict)) return IsGone(left);
    const bool passes =
        error.Is(Code::kTooManyRequests) || error.Is(Code::kUnavailable) || error.Is(Code::kTimeout);
    if (!passes) return error.Wrap("error when evicting pod " + KeyOf(left.pod));
    if (left.refusal != error.message()) {
      out_ << "[upgrade/drain] Pod " << KeyOf(left.pod) << " has to wait: " << error.message() << "\n";
    }
    left.refusal = error.message();
    return false;
  }

  Result<bool> IsGone(const Left& left) {
    const auto pod = api_.Get<corev1::Pod>(left.pod.ns, left.pod.name);
    if (pod) return pod->metadata().uid() != left.pod.uid;
    if (pod.error().Is(Code::kNotFound)) return true;
    if (pod.error().Is(Code::kUnavailable) || pod.error().Is(Code::kTimeout)) return false;
    // A node may read its own pods alone: another of that name is elsewhere by now.
    if (pod.error().Is(Code::kForbidden)) return true;
    return pod.error();
  }

  const client::RestClient& api_;
  std::ostream& out_;
  std::vector<Left> pods_;
};

}  // namespace

DrainPlan PlanDrain(const std::vector<corev1::Pod>& pods, const DrainOptions& options) {
  DrainPlan out;
  std::vector<std::string> daemons, alone, local;
  for (const corev1::Pod& pod : pods) {
    const std::string key = pod.metadata().namespace_() + "/" + pod.metadata().name();
    if (pod.metadata().annotations().contains("kubernetes.io/config.mirror")) continue;
    const metav1::OwnerReference* controller = ControllerOf(pod);
    if (controller && controller->kind() == "DaemonSet" && !IsFinished(pod)) {
      daemons.push_back(key);
      continue;
    }
    if (!controller && !IsFinished(pod)) alone.push_back(key);
    if (HasEmptyDir(pod) && !IsFinished(pod)) local.push_back(key);
    out.evicted.push_back({pod.metadata().namespace_(), pod.metadata().name(), pod.metadata().uid()});
  }
  if (!daemons.empty()) out.warnings.push_back("ignoring DaemonSet-managed Pods: " + Join(daemons, ", "));
  if (!alone.empty()) {
    (options.force ? out.warnings : out.errors)
        .push_back((options.force
                        ? "deleting Pods that declare no controller: "
                        : "cannot delete Pods that declare no controller (use --drain-force to override): ") +
                   Join(alone, ", "));
  }
  if (!local.empty()) {
    (options.delete_empty_dirs ? out.warnings : out.errors)
        .push_back(
            (options.delete_empty_dirs
                 ? "deleting Pods with local storage: "
                 : "cannot delete Pods with local storage (use --delete-emptydir-data to override): ") +
            Join(local, ", "));
  }
  return out;
}

Result<bool> SetUnschedulable(const client::RestClient& api, const std::string& node, bool value) {
  KEELSON_ASSIGN_OR_RETURN(const corev1::Node present, api.Get<corev1::Node>("", node));
  const bool was = present.spec().unschedulable();
  if (was == value) return was;
  const auto patched =
      api.Patch<corev1::Node>("", node, client::PatchType::kMerge,
                              std::string(R"({"spec":{"unschedulable":)") + (value ? "true" : "null") + "}}");
  if (!patched) return patched.error().Wrap((value ? "cordon node " : "uncordon node ") + node);
  return was;
}

Result<> EvictPods(const client::RestClient& api, const std::string& node, const DrainOptions& options,
                   std::ostream& out, Clock& clock) {
  client::ListOptions of_node;
  of_node.field_selector = "spec.nodeName=" + node;
  KEELSON_ASSIGN_OR_RETURN(const std::vector<corev1::Pod> pods, api.List<corev1::Pod>("", of_node));
  DrainPlan plan = PlanDrain(pods, options);
  if (!plan.errors.empty()) return Error(Code::kInvalid, Join(plan.errors, "\n"));
  for (const std::string& warning : plan.warnings) out << "[upgrade/drain] WARNING: " << warning << "\n";
  Drain drain(api, std::move(plan.evicted), out);
  const SteadyTime end = clock.SteadyNow() + options.timeout;
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(const bool done, drain.Step());
    if (done) return {};
    if (clock.SteadyNow() >= end) {
      return Error(Code::kTimeout,
                   "pods are left on node " + node + " after " +
                       api::FormatGoDuration(std::chrono::nanoseconds(options.timeout).count()) +
                       "; it stays cordoned, and the next run goes on:\n" + drain.WhatIsLeft());
    }
    Pause(clock, kPoll, {});
  }
}

}  // namespace keelson::ctl
