#include "controlplane/scheduler/volumes/volume_plan.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/k8s/pods/node_affinity.h"

namespace keelson::scheduler {

namespace {

using Claim = VolumeCatalog::Claim;
using Volume = VolumeCatalog::Volume;

api::Amount Size(const google::protobuf::Map<std::string, Quantity>& resources) {
  const auto it = resources.find("storage");
  return it == resources.end() ? api::Amount() : api::Amount::Of(it->second);
}

std::string ModeOf(const std::string& mode) { return mode.empty() ? "Filesystem" : mode; }

bool Reaches(const Volume& volume, const NodeFacts& node) {
  if (!volume.spec().node_affinity().has_required()) return true;
  const auto& terms = volume.spec().node_affinity().required().node_selector_terms();
  return std::any_of(terms.begin(), terms.end(),
                     [&](const auto& term) { return k8s::NodeTerm(term).Matches(node.view()); });
}

bool IsFor(const Volume& volume, const Claim& claim) {
  const corev1::ObjectReference& ref = volume.spec().claim_ref();
  return ref.name() == claim.metadata().name() && ref.namespace_() == claim.metadata().namespace_() &&
         (ref.uid().empty() || ref.uid() == claim.metadata().uid());
}

bool Suits(const Volume& volume, const Claim& claim, const NodeFacts& node) {
  if (volume.metadata().has_deletion_timestamp()) return false;
  const bool promised = volume.spec().has_claim_ref();
  if (promised ? !IsFor(volume, claim) : volume.status().phase() != "Available") return false;
  if (ModeOf(volume.spec().volume_mode()) != ModeOf(claim.spec().volume_mode())) return false;
  if (volume.spec().volume_attributes_class_name() != claim.spec().volume_attributes_class_name()) {
    return false;
  }
  if (Size(volume.spec().capacity()) < Size(claim.spec().resources().requests())) return false;
  for (const std::string& mode : claim.spec().access_modes()) {
    const auto& modes = volume.spec().access_modes();
    if (std::find(modes.begin(), modes.end(), mode) == modes.end()) return false;
  }
  if (claim.spec().has_selector()) {
    const auto selector = api::LabelSelector::From(claim.spec().selector());
    if (!selector || !selector->Matches(volume.metadata().labels())) return false;
  }
  return Reaches(volume, node);
}

bool InTopology(const storagev1::StorageClass& storage_class, const NodeFacts& node) {
  if (storage_class.allowed_topologies().empty()) return true;
  for (const corev1::TopologySelectorTerm& term : storage_class.allowed_topologies()) {
    const auto& wanted = term.match_label_expressions();
    if (std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
          const std::string* value = node.labels.Find(one.key());
          return value && std::find(one.values().begin(), one.values().end(), *value) != one.values().end();
        })) {
      return true;
    }
  }
  return false;
}

bool HasRoom(const storagev1::StorageClass& storage_class, const Claim& claim, const NodeFacts& node,
             const VolumeCatalog& volumes) {
  const auto driver = volumes.FindDriver(storage_class.provisioner());
  if (!driver || !driver->spec().storage_capacity()) return true;
  const api::Amount wanted = Size(claim.spec().resources().requests());
  api::LabelMap labels;
  for (const auto& [key, value] : node.labels.items()) labels[key] = value;
  for (const auto& capacity : volumes.CapacitiesOfClass(storage_class.metadata().name())) {
    if (!capacity->has_node_topology()) continue;
    const bool known = capacity->has_maximum_volume_size() || capacity->has_capacity();
    const api::Amount most = api::Amount::Of(
        capacity->has_maximum_volume_size() ? capacity->maximum_volume_size() : capacity->capacity());
    if (!known || most < wanted) continue;
    const auto selector = api::LabelSelector::From(capacity->node_topology());
    if (selector && selector->Matches(labels)) return true;
  }
  return false;
}

// The smallest volume that is there and suits; null: none.
VolumeCatalog::Ptr<Volume> FindFor(const Claim& claim, const NodeFacts& node, const VolumeCatalog& volumes,
                                   const std::set<std::string>& taken) {
  VolumeCatalog::Ptr<Volume> best;
  for (const auto& volume : volumes.VolumesOfClass(claim.spec().storage_class_name())) {
    if (taken.contains(volume->metadata().name()) || !Suits(*volume, claim, node)) continue;
    // One that is meant for the claim comes before any other.
    if (volume->spec().has_claim_ref()) return volume;
    if (!best || Size(volume->spec().capacity()) < Size(best->spec().capacity())) best = volume;
  }
  return best;
}

void PlanProvision(const ClaimSet::Claim& claim, const NodeFacts& node, const VolumeCatalog& volumes,
                   VolumePlan& plan) {
  const auto storage_class = volumes.FindClass(claim->spec().storage_class_name());
  if (!storage_class || storage_class->provisioner().empty() ||
      storage_class->provisioner() == kNoProvisioner || !InTopology(*storage_class, node)) {
    plan.unsatisfied = true;
  } else if (!HasRoom(*storage_class, *claim, node, volumes)) {
    plan.no_room = true;
  } else {
    plan.provision.push_back(claim);
  }
}

std::string ProblemOf(const PodInfo& pod, const PodVolumes::Claim& wanted, const ClaimSet::Claim& claim) {
  if (!claim) {
    if (wanted.ephemeral) {
      return fmt::format("waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"",
                         wanted.name);
    }
    return fmt::format("persistentvolumeclaim \"{}\" not found", wanted.name);
  }
  if (wanted.ephemeral) {
    const metav1::OwnerReference* owner = api::ControllerOf(claim->metadata());
    if (!owner || owner->uid() != pod.uid) {
      return fmt::format("PVC {} was not created for pod {} (pod is not owner)", api::KeyOf(*claim), pod.key);
    }
  }
  if (claim->status().phase() == "Lost") {
    return fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"",
                       wanted.name, claim->spec().volume_name());
  }
  if (claim->metadata().has_deletion_timestamp()) {
    return fmt::format("persistentvolumeclaim \"{}\" is being deleted", wanted.name);
  }
  return "";
}

}  // namespace

bool IsFullyBound(const Claim& claim) {
  return !claim.spec().volume_name().empty() && claim.metadata().annotations().contains(kBindCompleted);
}

ClaimSet ClaimsOf(const PodInfo& pod, const VolumeCatalog& volumes) {
  ClaimSet out;
  if (!pod.volumes) return out;
  for (const PodVolumes::Claim& wanted : pod.volumes->claims) {
    ClaimSet::Claim claim = volumes.FindClaim(pod.ns, wanted.name);
    if (out.problem = ProblemOf(pod, wanted, claim); !out.problem.empty()) return out;
    if (IsFullyBound(*claim)) {
      out.bound.push_back(std::move(claim));
      continue;
    }
    const auto storage_class = volumes.FindClass(claim->spec().storage_class_name());
    const bool waits = storage_class && storage_class->volume_binding_mode() == "WaitForFirstConsumer";
    (waits && claim->spec().volume_name().empty() ? out.delayed : out.immediate).push_back(std::move(claim));
  }
  if (!out.immediate.empty()) out.problem = "pod has unbound immediate PersistentVolumeClaims";
  // Small claims choose first, and take the smallest volume that suits.
  std::stable_sort(out.delayed.begin(), out.delayed.end(),
                   [](const ClaimSet::Claim& a, const ClaimSet::Claim& b) {
                     return Size(a->spec().resources().requests()) < Size(b->spec().resources().requests());
                   });
  return out;
}

VolumePlan PlanVolumes(const ClaimSet& claims, const NodeFacts& node, const VolumeCatalog& volumes) {
  VolumePlan plan;
  for (const ClaimSet::Claim& claim : claims.bound) {
    const auto volume = volumes.FindVolume(claim->spec().volume_name());
    if (!volume) {
      plan.lost = true;
    } else if (!Reaches(*volume, node)) {
      plan.conflict = true;
    }
  }
  std::set<std::string> taken;
  for (const ClaimSet::Claim& claim : claims.delayed) {
    const auto& annotations = claim->metadata().annotations();
    const auto selected = annotations.find(kSelectedNode);
    if (selected != annotations.end()) {
      // A provisioner is at work, for that node.
      if (selected->second != node.name) {
        plan.unsatisfied = true;
      } else {
        PlanProvision(claim, node, volumes, plan);
      }
      continue;
    }
    if (auto volume = FindFor(*claim, node, volumes, taken)) {
      taken.insert(volume->metadata().name());
      plan.bindings.push_back({std::move(volume), claim});
    } else {
      PlanProvision(claim, node, volumes, plan);
    }
  }
  return plan;
}

}  // namespace keelson::scheduler
