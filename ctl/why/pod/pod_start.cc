#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ctl/why/pod/pod_judge.h"
#include "lib/base/text.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

bool HasContainers(const PodView& view) {
  const corev1::PodStatus& status = view.pod.status();
  auto known = [](const corev1::ContainerStatus& one) { return !one.container_id().empty(); };
  return std::any_of(status.container_statuses().begin(), status.container_statuses().end(), known) ||
         std::any_of(status.init_container_statuses().begin(), status.init_container_statuses().end(), known);
}

// The name in quotes after the words: `configmap "web" not found`.
std::string QuotedAfter(const std::string& text, const std::string& words) {
  const size_t at = Lower(text).find(words + " \"");
  if (at == std::string::npos) return "";
  const size_t begin = at + words.size() + 2, end = text.find('"', begin);
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
}

// Whether the scheduler names volumes among its reasons.
bool VolumesMatter(const PodView& view, const std::vector<Problem>& so_far) {
  if (!view.pod.spec().node_name().empty()) return true;
  return std::any_of(so_far.begin(), so_far.end(), [](const Problem& problem) {
    return std::any_of(problem.evidence.begin(), problem.evidence.end(), [](const std::string& line) {
      return Lower(line).find("volume") != std::string::npos;
    });
  });
}

void JudgeClaims(const PodView& view, std::vector<Problem>& out) {
  const std::string& ns = view.pod.metadata().namespace_();
  for (const std::string& one : view.missing) {
    if (!one.starts_with("PersistentVolumeClaim ")) continue;
    const std::string name = one.substr(one.find(' ') + 1);
    out.push_back({"ClaimMissing",
                   "the pod's PersistentVolumeClaim " + name + " does not exist",
                   {},
                   {view.Kubectl("get pvc")}});
  }
  // A claim of a class with WaitForFirstConsumer has no volume before its pod has a node.
  const bool matter = VolumesMatter(view, out);
  for (const corev1::PersistentVolumeClaim& claim : view.claims) {
    if (!matter || claim.status().phase() == "Bound") continue;
    const std::string& name = claim.metadata().name();
    out.push_back({"ClaimNotBound",
                   fmt::format("the pod's PersistentVolumeClaim {} is {}: it has no volume", name,
                               claim.status().phase().empty() ? "new" : claim.status().phase()),
                   {},
                   {"nodectl why pvc " + ns + "/" + name}});
  }
}

void JudgeMounts(const PodView& view, std::vector<Problem>& out) {
  const corev1::Event* event = view.Last({"FailedMount", "FailedAttachVolume", "FailedMapVolume"});
  if (!event) return;
  if (auto missing = MissingReference(view, "a volume of the pod", event->message())) {
    missing->evidence = {EventText(*event)};
    return out.push_back(*missing);
  }
  Problem problem{"VolumeNotMounted", "the kubelet cannot mount a volume of the pod", {EventText(*event)}};
  if (event->reason() == "FailedAttachVolume") {
    problem = {
        "VolumeNotAttached", "a volume of the pod cannot be attached to its node", {EventText(*event)}};
  }
  for (const corev1::PersistentVolumeClaim& claim : view.claims) {
    problem.next.push_back("nodectl why pvc " + claim.metadata().namespace_() + "/" +
                           claim.metadata().name());
  }
  if (problem.next.empty()) {
    problem.next.push_back(view.Kubectl("describe pod " + view.pod.metadata().name()));
  }
  out.push_back(std::move(problem));
}

void JudgeSandbox(const PodView& view, std::vector<Problem>& out) {
  const corev1::Event* event = view.Last({"FailedCreatePodSandBox"});
  if (!event) return;
  const std::string text = Lower(event->message());
  const bool network = text.find("cni") != std::string::npos || text.find("network") != std::string::npos;
  const std::string& node = view.pod.spec().node_name();
  out.push_back(
      {network ? "NetworkSetupFailed" : "SandboxFailed",
       network ? "the network plugin (CNI) of node " + node + " cannot connect the pod"
               : "the runtime of node " + node + " cannot make the pod's sandbox",
       {EventText(*event)},
       {"nodectl why node " + node, network ? "ls -l /etc/cni/net.d /opt/cni/bin   # on node " + node
                                            : "nodectl info   # on node " + node}});
}

}  // namespace

std::optional<Problem> MissingReference(const PodView& view, const std::string& what,
                                        const std::string& text) {
  const bool absent = text.find("not found") != std::string::npos;
  for (const auto& [word, kind, plural] :
       {std::array{"configmap", "ConfigMap", "configmaps"}, std::array{"secret", "Secret", "secrets"}}) {
    const std::string name = QuotedAfter(text, word);
    if (absent && !name.empty()) {
      return Problem{std::string(kind) + "Missing",
                     fmt::format("{} needs {} {}, which does not exist", what, kind, name),
                     {text},
                     {view.Kubectl(std::string("get ") + plural)}};
    }
    // "couldn't find key a in ConfigMap default/web", "references non-existent secret key: a"
    if (text.find("find key") != std::string::npos &&
        text.find(std::string(" in ") + kind) != std::string::npos) {
      return Problem{"KeyMissing",
                     fmt::format("{} needs a key of a {} that does not have it", what, kind),
                     {text},
                     {view.Kubectl(std::string("get ") + plural)}};
    }
    if (Lower(text).find("references non-existent " + std::string(word) + " key") != std::string::npos ||
        text.find("references non-existent config key") != std::string::npos) {
      return Problem{"KeyMissing",
                     what + " needs a key of a ConfigMap or Secret that does not have it",
                     {text},
                     {view.Kubectl("get configmaps,secrets")}};
    }
  }
  return std::nullopt;
}

void JudgeStart(const PodView& view, std::vector<Problem>& out) {
  const corev1::PodStatus& status = view.pod.status();
  if (status.phase() != "Pending" || HasContainers(view)) return;
  const corev1::PodCondition* sandbox = k8s::FindCondition(status, k8s::kPodReadyToStartContainers);
  if (sandbox && sandbox->status() == "True") return;
  JudgeClaims(view, out);
  if (view.pod.spec().node_name().empty()) return;
  const size_t before = out.size();
  JudgeMounts(view, out);
  JudgeSandbox(view, out);
  if (out.size() == before && !status.has_start_time()) {
    const std::string& node = view.pod.spec().node_name();
    out.push_back({"KubeletSilent",
                   "the kubelet of node " + node + " has not taken the pod up yet",
                   {},
                   {"nodectl why node " + node, "journalctl -u kubelet -n 50   # on node " + node}});
  }
}

}  // namespace keelson::ctl
