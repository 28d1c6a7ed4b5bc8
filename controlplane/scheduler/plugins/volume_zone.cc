#include <set>

#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/volumes/volumes.h"

namespace keelson::scheduler {

namespace {

// Labels of volumes that say where they are, and what nodes may call them too.
constexpr std::pair<const char*, const char*> kPlaces[] = {
    {"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"},
    {"topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"},
};

struct Place {
  const char *label, *other_label;
  std::set<std::string> values;
};

struct Places : CycleState::Data {
  std::vector<Place> places;
};

// "a__b": the volume is in both.
std::set<std::string> Split(const std::string& text) {
  std::set<std::string> out;
  for (size_t from = 0;;) {
    const size_t to = text.find("__", from);
    out.insert(text.substr(from, to - from));
    if (to == std::string::npos) return out;
    from = to + 2;
  }
}

const std::string* Find(const NodeFacts& node, const char* label, const char* other) {
  const std::string* value = node.labels.Find(label);
  return value ? value : node.labels.Find(other);
}

class VolumeZone : public PreFilterPlugin, public FilterPlugin {
 public:
  VolumeZone(Reasons& reasons, VolumeCatalog& volumes)
      : reason_(reasons.Intern("node(s) had no available volume zone")), volumes_(volumes) {}
  std::string_view name() const override { return "VolumeZone"; }
  bool local() const override { return false; }

  PreFilterResult PreFilter(CycleState& state, const PodInfo& pod, const Snapshot&) override {
    PreFilterResult result;
    auto places = std::make_unique<Places>();
    for (size_t i = 0; pod.volumes && i < pod.volumes->claims.size(); ++i) {
      const auto claim = volumes_.FindClaim(pod.ns, pod.volumes->claims[i].name);
      const auto volume = claim ? volumes_.FindVolume(claim->spec().volume_name()) : nullptr;
      if (!volume) continue;
      for (const auto& [label, other] : kPlaces) {
        for (const char* name : {label, other}) {
          const auto it = volume->metadata().labels().find(name);
          if (it != volume->metadata().labels().end()) {
            places->places.push_back({label, other, Split(it->second)});
          }
        }
      }
    }
    if (places->places.empty()) result.status = Status::Skip();
    state.Set(this, std::move(places));
    return result;
  }
  FilterStatus Filter(const CycleState& state, const PodInfo&, const NodeInfo& node) override {
    bool anywhere = false;
    for (const auto& [label, other] : kPlaces) anywhere = anywhere || Find(*node.facts, label, other);
    if (!anywhere) return {};  // a cluster without zones
    for (const Place& place : state.Get<Places>(this)->places) {
      const std::string* value = Find(*node.facts, place.label, place.other_label);
      if (!value || !place.values.contains(*value)) {
        return FilterStatus::UnschedulableAndUnresolvable(reason_);
      }
    }
    return {};
  }
  uint32_t EventsToRegister() const override {
    using Kind = ClusterEvent::Kind;
    return Kind::kNodeAdd | Kind::kNodeUpdate | Kind::kStorageUpdate;
  }
  bool QueueingHint(const ClusterEvent&, const PodInfo&) const override { return true; }

 private:
  const uint16_t reason_;
  const VolumeCatalog& volumes_;
};

}  // namespace

std::unique_ptr<Plugin> NewVolumeZone(Reasons& reasons, VolumeCatalog& volumes) {
  return std::make_unique<VolumeZone>(reasons, volumes);
}

}  // namespace keelson::scheduler
