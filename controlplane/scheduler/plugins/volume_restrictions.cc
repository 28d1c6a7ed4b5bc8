#include <algorithm>

#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/volumes/volumes.h"

namespace keelson::scheduler {

namespace {

constexpr char kExclusive[] = "ReadWriteOncePod";

// Claims of the pod that only one pod may use.
struct Exclusive : CycleState::Data {
  std::vector<std::string> claims;
  int32_t users = 0;  // of any of them
};

bool Overlap(const google::protobuf::RepeatedPtrField<std::string>& a,
             const google::protobuf::RepeatedPtrField<std::string>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const std::string& one) { return std::find(b.begin(), b.end(), one) != b.end(); });
}

// Whether two volumes are one disk that cannot be used twice.
bool Conflict(const corev1::VolumeSource& a, const corev1::VolumeSource& b) {
  if (a.has_gce_persistent_disk() && b.has_gce_persistent_disk()) {
    const auto &x = a.gce_persistent_disk(), &y = b.gce_persistent_disk();
    return x.pd_name() == y.pd_name() && !(x.read_only() && y.read_only());
  }
  if (a.has_aws_elastic_block_store() && b.has_aws_elastic_block_store()) {
    return a.aws_elastic_block_store().volume_id() == b.aws_elastic_block_store().volume_id();
  }
  if (a.has_iscsi() && b.has_iscsi()) {
    return a.iscsi().iqn() == b.iscsi().iqn() && !(a.iscsi().read_only() && b.iscsi().read_only());
  }
  if (a.has_rbd() && b.has_rbd()) {
    const auto &x = a.rbd(), &y = b.rbd();
    return Overlap(x.monitors(), y.monitors()) && x.pool() == y.pool() && x.image() == y.image() &&
           !(x.read_only() && y.read_only());
  }
  return false;
}

bool Conflict(const std::vector<corev1::Volume>& wanted, const PodInfo& other) {
  if (!other.volumes) return false;
  for (const corev1::Volume& one : wanted) {
    for (const corev1::Volume& used : other.volumes->disks) {
      if (Conflict(one.volume_source(), used.volume_source())) return true;
    }
  }
  return false;
}

int32_t Uses(const PodInfo& pod, const std::vector<std::string>& claims) {
  int32_t count = 0;
  if (!pod.volumes) return count;
  for (const PodVolumes::Claim& claim : pod.volumes->claims) {
    count += std::find(claims.begin(), claims.end(), pod.ns + "/" + claim.name) != claims.end();
  }
  return count;
}

class VolumeRestrictions : public PreFilterPlugin, public FilterPlugin {
 public:
  VolumeRestrictions(Reasons& reasons, VolumeCatalog& volumes)
      : disk_(reasons.Intern("node(s) had no available disk")),
        exclusive_(reasons.Intern(
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode")),
        volumes_(volumes) {}
  std::string_view name() const override { return "VolumeRestrictions"; }
  bool local() const override { return false; }

  PreFilterResult PreFilter(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) override {
    auto exclusive = std::make_unique<Exclusive>();
    for (size_t i = 0; pod.volumes && i < pod.volumes->claims.size(); ++i) {
      const std::string& name = pod.volumes->claims[i].name;
      const auto claim = volumes_.FindClaim(pod.ns, name);
      if (!claim) continue;  // VolumeBinding says so
      const auto& modes = claim->spec().access_modes();
      if (std::find(modes.begin(), modes.end(), kExclusive) == modes.end()) continue;
      exclusive->claims.push_back(pod.ns + "/" + name);
      exclusive->users += snapshot.ClaimUsers(exclusive->claims.back());
    }
    PreFilterResult result;
    if (exclusive->claims.empty() && (!pod.volumes || pod.volumes->disks.empty())) {
      result.status = Status::Skip();
    }
    state.Set(this, std::move(exclusive));
    return result;
  }
  void AddPod(CycleState& state, const PodInfo&, const PodInfo& other, const NodeInfo&) override {
    if (auto* exclusive = state.Get<Exclusive>(this)) exclusive->users += Uses(other, exclusive->claims);
  }
  void RemovePod(CycleState& state, const PodInfo&, const PodInfo& other, const NodeInfo&) override {
    if (auto* exclusive = state.Get<Exclusive>(this)) exclusive->users -= Uses(other, exclusive->claims);
  }
  FilterStatus Filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) override {
    for (const PodPtr& other : node.pods) {
      if (Conflict(pod.volumes->disks, *other)) return FilterStatus::Unschedulable(disk_);
    }
    if (state.Get<Exclusive>(this)->users > 0) return FilterStatus::Unschedulable(exclusive_);
    return {};
  }

  uint32_t EventsToRegister() const override {
    using Kind = ClusterEvent::Kind;
    return Kind::kAssignedPodDelete | Kind::kNodeAdd | Kind::kStorageUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    if (event.kind != ClusterEvent::Kind::kAssignedPodDelete || !pod.volumes) return true;
    if (Conflict(pod.volumes->disks, *event.pod)) return true;
    std::vector<std::string> claims;
    for (const PodVolumes::Claim& claim : pod.volumes->claims) claims.push_back(pod.ns + "/" + claim.name);
    return Uses(*event.pod, claims) > 0;
  }

 private:
  const uint16_t disk_, exclusive_;
  const VolumeCatalog& volumes_;
};

}  // namespace

std::unique_ptr<Plugin> NewVolumeRestrictions(Reasons& reasons, VolumeCatalog& volumes) {
  return std::make_unique<VolumeRestrictions>(reasons, volumes);
}

}  // namespace keelson::scheduler
