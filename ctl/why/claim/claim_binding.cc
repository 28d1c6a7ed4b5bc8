#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ctl/why/claim/claim_judge.h"
#include "lib/api/quantity.h"

namespace keelson::ctl {

namespace {

constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";

bool IsDefault(const storagev1::StorageClass& one) {
  const auto& annotations = one.metadata().annotations();
  for (const char* name :
       {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}) {
    auto found = annotations.find(name);
    if (found != annotations.end() && found->second == "true") return true;
  }
  return false;
}

std::string SelectedNode(const corev1::PersistentVolumeClaim& claim) {
  auto found = claim.metadata().annotations().find(kSelectedNode);
  return found == claim.metadata().annotations().end() ? "" : found->second;
}

bool RunsOn(const storagev1::CSINode& node, const std::string& driver) {
  return std::any_of(node.spec().drivers().begin(), node.spec().drivers().end(),
                     [&](const auto& one) { return one.name() == driver; });
}

std::vector<std::string> NodesOf(const ClaimView& view, const std::string& driver) {
  std::vector<std::string> out;
  for (const storagev1::CSINode& node : view.driver_nodes) {
    if (RunsOn(node, driver)) out.push_back(node.metadata().name());
  }
  return out;
}

Problem NoClass(const ClaimView& view) {
  const std::optional<std::string> name = ClassNameOf(view.claim);
  if (name && !name->empty()) {
    return {"ClassMissing", "StorageClass " + *name + " does not exist"};
  }
  if (name) {
    return {"NoMatchingVolume",
            "the claim asks for no class (\"\"): it waits for a volume without a class that an administrator "
            "makes"};
  }
  for (const storagev1::StorageClass& one : view.classes) {
    if (IsDefault(one)) {
      return {"NotBoundYet", "the claim names no class; the binder has yet to give it the default, " +
                                 one.metadata().name()};
    }
  }
  return {"NoDefaultClass", "the claim names no class, and no StorageClass is the default"};
}

// Why a claim of a class with WaitForFirstConsumer has no node yet.
Problem NoConsumer(const ClaimView& view) {
  const std::vector<std::string> pods = view.RunningPods();
  if (pods.empty()) {
    return {"WaitForFirstConsumer", "the class waits for a pod that uses the claim, and there is none"};
  }
  return {"WaitForPodScheduled",
          fmt::format("no node is chosen yet for pod {}: nodectl why pod {}/{}", fmt::join(pods, ", "),
                      view.claim.metadata().namespace_(), pods[0])};
}

// nullopt: there is room somewhere, or the driver does not tell.
std::optional<Problem> NoCapacity(const ClaimView& view, const storagev1::StorageClass& own) {
  const bool tells = std::any_of(view.drivers.begin(), view.drivers.end(), [&](const auto& driver) {
    return driver.metadata().name() == own.provisioner() && driver.spec().storage_capacity();
  });
  if (!tells) return std::nullopt;
  const auto& requests = view.claim.spec().resources().requests();
  auto wanted = requests.find("storage");
  if (wanted == requests.end()) return std::nullopt;
  api::Amount most;
  bool any = false;
  for (const storagev1::CSIStorageCapacity& one : view.capacities) {
    if (one.storage_class_name() != own.metadata().name()) continue;
    any = true;
    const auto& room = one.has_maximum_volume_size() ? one.maximum_volume_size() : one.capacity();
    most = std::max(most, api::Amount::Of(room));
  }
  if (!any) {
    return Problem{"NoCapacity",
                   "the driver tells its capacity, but there is no CSIStorageCapacity of class " +
                       own.metadata().name() + ": pods are not scheduled until there is"};
  }
  if (most >= api::Amount::Of(wanted->second)) return std::nullopt;
  return Problem{"NoCapacity", fmt::format("{} are wanted, and no place of class {} has more than {}",
                                           api::Amount::Of(wanted->second).ToString(), own.metadata().name(),
                                           most.ToString())};
}

std::optional<Problem> BadSource(const ClaimView& view) {
  const corev1::Event* event = view.LastOfClaim({"ProvisioningFailed"});
  if (event) return std::nullopt;  // the provisioner says more
  const auto& spec = view.claim.spec();
  if (!spec.has_data_source_ref()) return std::nullopt;
  const bool known = spec.data_source_ref().kind() == "PersistentVolumeClaim" ||
                     spec.data_source_ref().kind() == "VolumeSnapshot";
  if (known) return std::nullopt;
  return Problem{"ForeignSource", "a populator has to fill the volume from " + spec.data_source_ref().kind() +
                                      " " + spec.data_source_ref().name()};
}

void JudgeProvisioning(const ClaimView& view, const storagev1::StorageClass& own, std::vector<Problem>& out) {
  const std::string& driver = own.provisioner();
  if (driver.starts_with("kubernetes.io/")) {
    out.push_back({"NoMatchingVolume", "nothing makes volumes of class " + own.metadata().name() + " (" +
                                           driver + "): it waits for one that an administrator makes"});
    return;
  }
  const std::string node = SelectedNode(view.claim);
  const bool waits = own.volume_binding_mode() == "WaitForFirstConsumer";
  if (waits && node.empty()) out.push_back(NoConsumer(view));
  if (auto problem = NoCapacity(view, own)) out.push_back(*problem);
  if (waits && node.empty()) return;
  if (auto problem = BadSource(view)) out.push_back(*problem);
  const std::vector<std::string> nodes = NodesOf(view, driver);
  if (nodes.empty()) {
    out.push_back({"DriverMissing", "no node has registered CSI driver " + driver});
  } else if (!node.empty() && std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
    out.push_back(
        {"DriverMissing", "node " + node + ", which the scheduler has chosen, has no CSI driver " + driver});
  }
  const corev1::Event* last = view.LastOfClaim({"ProvisioningFailed", "Provisioning"});
  if (last && last->reason() == "ProvisioningFailed") {
    out.push_back({"ProvisioningFailed", last->message()});
  } else if (last) {
    out.push_back({"Provisioning", last->message()});
  } else {
    out.push_back(
        {"NoProvisioner", "no provisioner of " + driver + " has taken the claim up: is it running?"});
  }
}

}  // namespace

std::vector<Problem> JudgeBinding(const ClaimView& view) {
  const std::string& named = view.claim.spec().volume_name();
  if (!named.empty()) {
    if (!view.volume) return {{"VolumeMissing", "PersistentVolume " + named + " does not exist"}};
    const corev1::ObjectReference& owner = view.volume->spec().claim_ref();
    if (!owner.name().empty() && (owner.namespace_() + "/" + owner.name() != view.Name() ||
                                  (!owner.uid().empty() && owner.uid() != view.claim.metadata().uid()))) {
      return {
          {"VolumeTaken", fmt::format("PersistentVolume {} is {} and belongs to another claim, {}/{}", named,
                                      view.volume->status().phase(), owner.namespace_(), owner.name())}};
    }
    return {{"NotBoundYet", "PersistentVolume " + named + " is not bound yet"}};
  }
  const storagev1::StorageClass* own = view.Class();
  std::vector<Problem> out;
  if (!own) {
    out.push_back(NoClass(view));
  } else {
    JudgeProvisioning(view, *own, out);
  }
  return out;
}

}  // namespace keelson::ctl
