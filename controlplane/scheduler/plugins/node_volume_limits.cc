#include <map>
#include <set>

#include <fmt/format.h>

#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/volumes/volumes.h"

namespace keelson::scheduler {

namespace {

// Volumes by CSI driver. Those in the specs of pods do not count: nothing attaches them.
using ByDriver = std::map<std::string, std::set<std::string>>;

struct Wanted : CycleState::Data {
  ByDriver volumes;
};

class NodeVolumeLimits : public PreFilterPlugin, public FilterPlugin {
 public:
  NodeVolumeLimits(Reasons& reasons, VolumeCatalog& volumes)
      : reason_(reasons.Intern("node(s) exceed max volume count")), volumes_(volumes) {}
  std::string_view name() const override { return "NodeVolumeLimits"; }
  bool local() const override { return false; }

  PreFilterResult PreFilter(CycleState& state, const PodInfo& pod, const Snapshot&) override {
    PreFilterResult result;
    auto wanted = std::make_unique<Wanted>();
    Collect(pod, wanted->volumes);
    if (wanted->volumes.empty()) result.status = Status::Skip();
    state.Set(this, std::move(wanted));
    return result;
  }
  FilterStatus Filter(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    return Exceeded(state, node).empty() ? FilterStatus() : FilterStatus::Unschedulable(reason_);
  }
  std::string Details(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    return Exceeded(state, node);
  }
  uint32_t EventsToRegister() const override {
    using Kind = ClusterEvent::Kind;
    return Kind::kAssignedPodDelete | Kind::kNodeAdd | Kind::kStorageUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo&) const override {
    return event.kind != ClusterEvent::Kind::kAssignedPodDelete || event.pod->volumes;
  }

 private:
  void Collect(const PodInfo& pod, ByDriver& out) const {
    if (!pod.volumes) return;
    for (const PodVolumes::Claim& wanted : pod.volumes->claims) {
      const auto claim = volumes_.FindClaim(pod.ns, wanted.name);
      if (!claim) continue;
      const auto volume =
          claim->spec().volume_name().empty() ? nullptr : volumes_.FindVolume(claim->spec().volume_name());
      if (volume) {
        Add(*volume, out);
      } else if (const auto storage_class = volumes_.FindClass(claim->spec().storage_class_name())) {
        out[storage_class->provisioner()].insert(pod.ns + "/" + wanted.name);
      }
    }
  }
  static void Add(const corev1::PersistentVolume& volume, ByDriver& out) {
    const auto& source = volume.spec().persistent_volume_source();
    if (source.has_csi()) out[source.csi().driver()].insert(source.csi().volume_handle());
  }
  // What is too much on the node; "" when nothing is.
  std::string Exceeded(const CycleState& state, const NodeInfo& node) const {
    const auto drivers = volumes_.DriversOf(node.facts->name);
    if (!drivers) return "";
    ByDriver used;
    for (const PodPtr& other : node.pods) Collect(*other, used);
    // A volume takes its place until it is detached, also when its pods are gone.
    for (const std::string& attached : volumes_.AttachedTo(node.facts->name)) {
      if (const auto volume = volumes_.FindVolume(attached)) Add(*volume, used);
    }
    for (const auto& [driver, wanted] : state.Get<Wanted>(this)->volumes) {
      for (const storagev1::CSINodeDriver& on_node : drivers->spec().drivers()) {
        if (on_node.name() != driver || !on_node.allocatable().has_count()) continue;
        std::set<std::string> all = used[driver];
        all.insert(wanted.begin(), wanted.end());
        const auto limit = static_cast<size_t>(on_node.allocatable().count());
        if (all.size() > limit && all.size() > used[driver].size()) {
          return fmt::format("{}: {} volumes with the pod's, the node takes {}", driver, all.size(), limit);
        }
      }
    }
    return "";
  }

  const uint16_t reason_;
  const VolumeCatalog& volumes_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeVolumeLimits(Reasons& reasons, VolumeCatalog& volumes) {
  return std::make_unique<NodeVolumeLimits>(reasons, volumes);
}

}  // namespace keelson::scheduler
