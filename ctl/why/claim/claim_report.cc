#include <algorithm>
#include <array>
#include <string_view>

#include "ctl/why/claim/claim_judge.h"

namespace keelson::ctl {

namespace {

// NS, CLAIM, VOLUME, POD: what the claim has by these names; a command without what it needs is left out.
struct Step {
  std::string_view reason, command;
};
constexpr std::array<Step, 28> kSteps{{
    {"ClassMissing", "kubectl get storageclass"},
    {"NoDefaultClass", "kubectl get storageclass"},
    {"NoMatchingVolume", "kubectl get pv"},
    {"WaitForPodScheduled", "nodectl why pod NS/POD"},
    {"NoCapacity", "kubectl get csistoragecapacities -A"},
    {"DriverMissing", "kubectl get csinodes -o wide"},
    {"NoProvisioner", "kubectl get pods -A | grep -i csi"},
    {"ProvisioningFailed", "kubectl -n NS describe pvc CLAIM"},
    {"ForeignSource", "kubectl -n NS describe pvc CLAIM"},
    {"NotBoundYet", "kubectl -n NS describe pvc CLAIM"},
    {"VolumeMissing", "kubectl get pv"},
    {"VolumeTaken", "kubectl describe pv VOLUME"},
    {"VolumeLost", "kubectl -n NS delete pvc CLAIM"},
    {"VolumeFailed", "kubectl describe pv VOLUME"},
    {"VolumeDeleted", "kubectl describe pv VOLUME"},
    {"VolumeAbnormal", "kubectl describe pv VOLUME"},
    {"NodeGone", "kubectl describe pv VOLUME"},
    {"NodeNotReady", "kubectl get nodes"},
    {"AttachPending", "kubectl get volumeattachments"},
    {"AttachFailed", "kubectl get volumeattachments -o yaml"},
    {"DetachFailed", "kubectl get volumeattachments -o yaml"},
    {"MountFailed", "kubectl -n NS describe pod POD"},
    {"ExpansionPending", "kubectl -n NS describe pvc CLAIM"},
    {"ExpansionFailed", "kubectl -n NS describe pvc CLAIM"},
    {"ModificationPending", "kubectl -n NS describe pvc CLAIM"},
    {"ModificationFailed", "kubectl get volumeattributesclasses"},
    {"InUse", "kubectl -n NS delete pod POD"},
    {"Finalizer", "kubectl -n NS get pvc CLAIM -o yaml"},
}};

// False: there is nothing of that name.
bool Fill(std::string& command, std::string_view word, const std::string& value) {
  const size_t at = command.find(word);
  if (at == std::string::npos) return true;
  command.replace(at, word.size(), value);
  return !value.empty();
}

}  // namespace

std::vector<std::string> NextForClaim(const ClaimView& view, const std::string& reason) {
  const auto* found =
      std::find_if(kSteps.begin(), kSteps.end(), [&](const Step& step) { return step.reason == reason; });
  if (found == kSteps.end() || found->command.empty()) return {};
  const std::vector<std::string> pods = view.RunningPods();
  std::string command(found->command);
  const bool whole = Fill(command, "NS", view.claim.metadata().namespace_()) &&
                     Fill(command, "CLAIM", view.claim.metadata().name()) &&
                     Fill(command, "VOLUME", view.claim.spec().volume_name()) &&
                     Fill(command, "POD", pods.empty() ? "" : pods[0]);
  return whole ? std::vector<std::string>{command} : std::vector<std::string>{};
}

}  // namespace keelson::ctl
