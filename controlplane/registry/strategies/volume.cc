// PersistentVolume, PersistentVolumeClaim.
#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"

namespace keelson::registry {
namespace {

class VolumeStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    auto& status = *static_cast<corev1::PersistentVolume&>(object).mutable_status();
    status.set_phase("Pending");
    *status.mutable_last_phase_transition_time() = api::ToTime(context.clock.Now());
  }

  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    Strategy::PreparePart(context, part, object, old);
    if (part != Part::kStatus) return;
    auto& status = *static_cast<corev1::PersistentVolume&>(object).mutable_status();
    const auto& before = static_cast<const corev1::PersistentVolume&>(old).status();
    const bool same_phase = status.phase() == before.phase();
    if (same_phase && !status.has_last_phase_transition_time()) {
      if (before.has_last_phase_transition_time()) {
        *status.mutable_last_phase_transition_time() = before.last_phase_transition_time();
      }
    } else if (!same_phase && (!status.has_last_phase_transition_time() ||
                               status.last_phase_transition_time().seconds() ==
                                   before.last_phase_transition_time().seconds())) {
      *status.mutable_last_phase_transition_time() = api::ToTime(context.clock.Now());
    }
  }
};

class ClaimStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    auto& claim = static_cast<corev1::PersistentVolumeClaim&>(object);
    claim.mutable_status()->set_phase("Pending");
    SettleSources(*claim.mutable_spec(), nullptr);
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    SettleSources(*static_cast<corev1::PersistentVolumeClaim&>(object).mutable_spec(),
                  &static_cast<const corev1::PersistentVolumeClaim&>(old).spec());
  }

 private:
  // dataSource accepts only claims and snapshots, others are ignored. If one of the two fields is set, the
  // other follows. References to other namespaces are off by default.
  static void SettleSources(corev1::PersistentVolumeClaimSpec& spec,
                            const corev1::PersistentVolumeClaimSpec* old) {
    if (!(old && old->has_data_source_ref()) && !spec.data_source_ref().namespace_().empty()) {
      spec.clear_data_source_ref();
    }
    if (spec.has_data_source() && !(old && old->has_data_source()) &&
        !IsClaimOrSnapshot(spec.data_source())) {
      spec.clear_data_source();
    }
    if (spec.has_data_source() && !spec.has_data_source_ref()) {
      Copy(spec.data_source(), *spec.mutable_data_source_ref());
    } else if (spec.has_data_source_ref() && !spec.has_data_source() &&
               spec.data_source_ref().namespace_().empty()) {
      Copy(spec.data_source_ref(), *spec.mutable_data_source());
    }
  }
  static bool IsClaimOrSnapshot(const corev1::TypedLocalObjectReference& source) {
    return (source.kind() == "PersistentVolumeClaim" && source.api_group().empty()) ||
           (source.kind() == "VolumeSnapshot" && source.api_group() == "snapshot.storage.k8s.io");
  }
  template <typename From, typename To>
  static void Copy(const From& from, To& to) {
    if (from.has_api_group()) to.set_api_group(from.api_group());
    if (from.has_kind()) to.set_kind(from.kind());
    if (from.has_name()) to.set_name(from.name());
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeVolumeStrategy(const ResourceInfo& info) {
  if (!info.group.empty()) return nullptr;
  if (info.resource == "persistentvolumes") return std::make_unique<VolumeStrategy>(info);
  if (info.resource == "persistentvolumeclaims") return std::make_unique<ClaimStrategy>(info);
  return nullptr;
}

}  // namespace keelson::registry
