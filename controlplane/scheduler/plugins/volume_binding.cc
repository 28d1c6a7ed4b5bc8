#include <fmt/format.h>

#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/volumes/volume_plan.h"
#include "lib/api/meta.h"

namespace keelson::scheduler {

namespace {

struct Claims : CycleState::Data {
  ClaimSet claims;
  // What Reserve has assumed, as it is to be written.
  std::vector<corev1::PersistentVolume> volumes;
  std::vector<corev1::PersistentVolumeClaim> provision;
};

class VolumeBinding : public PreFilterPlugin,
                      public FilterPlugin,
                      public ReservePlugin,
                      public PreBindPlugin {
 public:
  VolumeBinding(Reasons& reasons, VolumeCatalog& volumes, const client::RestClient* api,
                VolumeBindingArgs args)
      : lost_(reasons.Intern("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")),
        conflict_(reasons.Intern("node(s) didn't match PersistentVolume's node affinity")),
        unsatisfied_(reasons.Intern("node(s) didn't find available persistent volumes to bind")),
        no_room_(reasons.Intern("node(s) did not have enough free storage")),
        volumes_(volumes),
        api_(api ? std::optional(*api) : std::nullopt),
        args_(args) {}
  std::string_view name() const override { return "VolumeBinding"; }
  bool local() const override { return false; }

  PreFilterResult PreFilter(CycleState& state, const PodInfo& pod, const Snapshot&) override {
    PreFilterResult result;
    auto own = std::make_unique<Claims>();
    own->claims = ClaimsOf(pod, volumes_);
    if (!own->claims.problem.empty()) {
      result.status = Status::UnschedulableAndUnresolvable(own->claims.problem);
    } else if (own->claims.bound.empty() && own->claims.delayed.empty()) {
      result.status = Status::Skip();
    }
    state.Set(this, std::move(own));
    return result;
  }
  FilterStatus Filter(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    const VolumePlan plan = PlanVolumes(state.Get<Claims>(this)->claims, *node.facts, volumes_);
    FilterStatus status;
    if (plan.ok()) return status;
    status.code = FilterStatus::Code::kUnschedulableAndUnresolvable;
    if (plan.lost) status.Add(lost_);
    if (plan.conflict) status.Add(conflict_);
    if (plan.unsatisfied) status.Add(unsatisfied_);
    if (plan.no_room) status.Add(no_room_);
    return status;
  }

  Status Reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node) override {
    Claims* own = state.Get<Claims>(this);
    if (!own || own->claims.delayed.empty()) return {};
    const VolumePlan plan = PlanVolumes(own->claims, *node.facts, volumes_);
    if (!plan.ok()) {
      return Status::Failed(
          fmt::format("volumes of {} on {} are not what they were", pod.key, node.facts->name));
    }
    for (const VolumePlan::Binding& binding : plan.bindings) {
      corev1::PersistentVolume& volume = own->volumes.emplace_back(*binding.volume);
      if (!volume.spec().has_claim_ref()) {
        (*volume.mutable_metadata()->mutable_annotations())[kBoundByController] = "yes";
      }
      corev1::ObjectReference& ref = *volume.mutable_spec()->mutable_claim_ref();
      ref.set_kind("PersistentVolumeClaim");
      ref.set_api_version("v1");
      ref.set_namespace_(binding.claim->metadata().namespace_());
      ref.set_name(binding.claim->metadata().name());
      ref.set_uid(binding.claim->metadata().uid());
      ref.set_resource_version(binding.claim->metadata().resource_version());
      volumes_.Assume(volume);
    }
    for (const ClaimSet::Claim& claim : plan.provision) {
      corev1::PersistentVolumeClaim& asked = own->provision.emplace_back(*claim);
      (*asked.mutable_metadata()->mutable_annotations())[kSelectedNode] = node.facts->name;
      volumes_.Assume(asked);
    }
    return {};
  }
  void Unreserve(CycleState& state, const PodInfo&, const std::string&) override {
    Claims* own = state.Get<Claims>(this);
    if (!own) return;
    for (const auto& volume : own->volumes) volumes_.RestoreVolume(volume.metadata().name());
    for (const auto& claim : own->provision) volumes_.RestoreClaim(api::KeyOf(claim));
  }

  // Writes what Reserve has assumed; then all claims are to be bound.
  Result<> PreBind(CycleState& state, const PodInfo&, const std::string&) override {
    Claims* own = state.Get<Claims>(this);
    if (!own || (own->volumes.empty() && own->provision.empty())) return {};
    if (!api_) return Error(Code::kInternal, "no API server to write volumes to");
    for (const auto& volume : own->volumes) {
      KEELSON_ASSIGN_OR_RETURN(const corev1::PersistentVolume written, api_->Update(volume));
      volumes_.Assume(written);
    }
    for (const auto& claim : own->provision) {
      KEELSON_ASSIGN_OR_RETURN(const corev1::PersistentVolumeClaim written, api_->Update(claim));
      volumes_.Assume(written);
    }
    return {};
  }
  std::optional<Result<>> PreBindDone(CycleState& state, const PodInfo& pod) override {
    Claims* own = state.Get<Claims>(this);
    if (!own || (own->volumes.empty() && own->provision.empty())) return Result<>();
    if (const Result<> selected = StillSelected(*own); !selected) return selected;
    const ClaimSet now = ClaimsOf(pod, volumes_);
    if (!now.delayed.empty() || !now.immediate.empty()) return std::nullopt;
    if (!now.problem.empty()) return Error(Code::kInternal, now.problem);
    return Result<>();
  }
  std::chrono::milliseconds PreBindTimeout() const override {
    return std::chrono::seconds(args_.bind_timeout_seconds);
  }
  Error PreBindTimeoutError() const override {
    return Error(Code::kTimeout, "binding volumes: timed out waiting for the condition");
  }

  uint32_t EventsToRegister() const override {
    using Kind = ClusterEvent::Kind;
    return Kind::kNodeAdd | Kind::kNodeUpdate | Kind::kStorageUpdate;
  }
  bool QueueingHint(const ClusterEvent&, const PodInfo&) const override { return true; }

 private:
  // A provisioner that cannot serve the node takes the node off the claim: another one has to be found.
  Result<> StillSelected(const Claims& own) const {
    for (const auto& asked : own.provision) {
      const auto live = volumes_.FindClaim(asked.metadata().namespace_(), asked.metadata().name());
      if (!live || !live->spec().volume_name().empty()) continue;
      const auto& annotations = live->metadata().annotations();
      const auto selected = annotations.find(kSelectedNode);
      if (selected == annotations.end() ||
          selected->second != asked.metadata().annotations().at(kSelectedNode)) {
        return Error(Code::kInternal, fmt::format("binding volumes: provisioning failed for PVC \"{}\"",
                                                  asked.metadata().name()));
      }
    }
    return {};
  }

  const uint16_t lost_, conflict_, unsatisfied_, no_room_;
  VolumeCatalog& volumes_;
  const std::optional<client::RestClient> api_;
  const VolumeBindingArgs args_;
};

}  // namespace

std::unique_ptr<Plugin> NewVolumeBinding(Reasons& reasons, VolumeCatalog& volumes,
                                         const client::RestClient* api, VolumeBindingArgs args) {
  return std::make_unique<VolumeBinding>(reasons, volumes, api, args);
}

}  // namespace keelson::scheduler
