// The reference's volumes, and the pods that it would evict.
#include <algorithm>

#include "controlplane/scheduler/testing/reference.h"
#include "lib/api/meta.h"
#include "lib/api/selector.h"
#include "lib/k8s/pods/node_affinity.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler::testing {

namespace {

constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
constexpr char kNoVolume[] = "node(s) didn't find available persistent volumes to bind";
constexpr char kNoRoom[] = "node(s) did not have enough free storage";

std::vector<std::string> ClaimsOf(const corev1::Pod& pod) {
  std::vector<std::string> out;
  for (const corev1::Volume& volume : pod.spec().volumes()) {
    out.push_back(pod.metadata().namespace_() + "/" +
                  volume.volume_source().persistent_volume_claim().claim_name());
  }
  return out;
}

bool Reaches(const corev1::PersistentVolume& volume, const corev1::Node& node) {
  if (!volume.spec().node_affinity().has_required()) return true;
  const k8s::LabelSet labels(node.metadata().labels());
  const auto& terms = volume.spec().node_affinity().required().node_selector_terms();
  return std::any_of(terms.begin(), terms.end(), [&](const auto& term) {
    return k8s::NodeTerm(term).Matches({node.metadata().name(), labels});
  });
}

int64_t Size(const k8s::QuantityMap& resources) {
  return k8s::ScaledValue("storage", api::Amount::Of(resources.at("storage")));
}

bool ForOnePod(const corev1::PersistentVolumeClaim& claim) {
  return claim.spec().access_modes(0) == "ReadWriteOncePod";
}

}  // namespace

const Reference::StorageClass& Reference::ClassOf(const corev1::PersistentVolumeClaim& claim) const {
  return classes.at(claim.spec().storage_class_name());
}

std::string Reference::Problem(const corev1::Pod& pod) const {
  for (const std::string& key : ClaimsOf(pod)) {
    const corev1::PersistentVolumeClaim& claim = claims.at(key);
    if (claim.spec().volume_name().empty() && !ClassOf(claim).waits) {
      return "pod has unbound immediate PersistentVolumeClaims";
    }
  }
  return "";
}

std::string Reference::WhyNotMade(const corev1::PersistentVolumeClaim& claim,
                                  const corev1::Node& node) const {
  const StorageClass& its = ClassOf(claim);
  const auto& asked = claim.metadata().annotations();
  if (asked.contains(kSelectedNode) && asked.at(kSelectedNode) != node.metadata().name()) return kNoVolume;
  const auto& labels = node.metadata().labels();
  const std::string zone = labels.contains(kZone) ? labels.at(kZone) : "";
  if (!its.provisions || (!its.zones.empty() && !its.zones.contains(zone))) return kNoVolume;
  for (const auto& [name, room] : rooms) {
    if (room.zone == zone && room.size >= Size(claim.spec().resources().requests())) return "";
  }
  return kNoRoom;
}

std::map<std::string, std::string> Reference::VolumesFor(const corev1::Pod& pod,
                                                         const corev1::Node& node) const {
  std::vector<const corev1::PersistentVolumeClaim*> waiting;
  for (const std::string& key : ClaimsOf(pod)) {
    const corev1::PersistentVolumeClaim& claim = claims.at(key);
    if (claim.spec().volume_name().empty() && ClassOf(claim).waits) waiting.push_back(&claim);
  }
  const auto size = [](const auto* claim) { return Size(claim->spec().resources().requests()); };
  std::stable_sort(waiting.begin(), waiting.end(),
                   [&](const auto* a, const auto* b) { return size(a) < size(b); });
  std::map<std::string, std::string> out;
  std::set<std::string> taken;
  for (const auto* claim : waiting) {
    const corev1::PersistentVolume* best = nullptr;
    const bool asked = claim->metadata().annotations().contains(kSelectedNode);
    for (const auto& [name, volume] : volumes) {
      if (asked || volume.spec().storage_class_name() != claim->spec().storage_class_name()) continue;
      if (volume.spec().has_claim_ref() || taken.contains(name) || !Reaches(volume, node)) continue;
      if (Size(volume.spec().capacity()) < size(claim)) continue;
      if (!best || Size(volume.spec().capacity()) < Size(best->spec().capacity())) best = &volume;
    }
    const std::string name = best ? best->metadata().name() : "";
    out[api::KeyOf(*claim)] = name;
    taken.insert(name);
  }
  return out;
}

std::string Reference::Volumes(const corev1::Pod& pod, const corev1::Node& node) const {
  const std::vector<std::string> own = ClaimsOf(pod);
  for (const std::string& key : own) {
    if (!ForOnePod(claims.at(key))) continue;
    for (const corev1::Pod& other : pods) {
      const std::vector<std::string> theirs = ClaimsOf(other);
      if (std::find(theirs.begin(), theirs.end(), key) != theirs.end()) {
        return "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
      }
    }
  }
  std::set<std::string> used, wanted;
  const auto collect = [&](const corev1::Pod& of, std::set<std::string>& into) {
    for (const std::string& key : ClaimsOf(of)) {
      const std::string& name = claims.at(key).spec().volume_name();
      if (!name.empty()) into.insert(name);
      if (name.empty() && ClassOf(claims.at(key)).provisions) into.insert("the one of claim " + key);
    }
  };
  for (const corev1::Pod* other : On(node)) collect(*other, used);
  collect(pod, wanted);
  std::set<std::string> all = used;
  all.insert(wanted.begin(), wanted.end());
  const auto limit = volume_limits.find(node.metadata().name());
  if (limit != volume_limits.end() && all.size() > used.size() &&
      all.size() > static_cast<size_t>(limit->second)) {
    return "node(s) exceed max volume count";
  }
  bool reaches = true, placed = true;
  for (const std::string& name : wanted) {
    if (!volumes.contains(name)) continue;  // to be made
    const corev1::PersistentVolume& volume = volumes.at(name);
    reaches = reaches && Reaches(volume, node);
    const auto& places = volume.metadata().labels();
    const auto& here = node.metadata().labels();
    if (places.contains(kZone) && here.contains(kZone)) placed = placed && places.at(kZone) == here.at(kZone);
  }
  std::set<std::string> problems;
  for (const auto& [claim, volume] : VolumesFor(pod, node)) {
    if (volume.empty()) problems.insert(WhyNotMade(claims.at(claim), node));
  }
  std::string why = reaches ? "" : "node(s) didn't match PersistentVolume's node affinity";
  for (const char* one : {kNoVolume, kNoRoom}) {
    if (problems.contains(one)) why += (why.empty() ? "" : ", ") + std::string(one);
  }
  if (!why.empty()) return why;
  return placed ? "" : "node(s) had no available volume zone";
}

Reference::Victims Reference::VictimsOn(const corev1::Pod& pod, const corev1::Node& node) const {
  const auto priority = [](const corev1::Pod& of) { return k8s::Priority(of.spec()); };
  const auto since = [](const corev1::Pod& of) { return of.status().start_time().seconds(); };
  std::vector<corev1::Pod> lesser;
  Reference trial = *this;
  std::erase_if(trial.pods, [&](const corev1::Pod& other) {
    const bool goes = other.spec().node_name() == node.metadata().name() && priority(other) < priority(pod);
    if (goes) lesser.push_back(other);
    return goes;
  });
  Victims out;
  if (lesser.empty() || !trial.RefusalWithNominatedPods(pod, node).empty()) return out;
  // The random pods have start times of their own, so this is an order without ties.
  std::sort(lesser.begin(), lesser.end(), [&](const corev1::Pod& a, const corev1::Pod& b) {
    return priority(a) != priority(b) ? priority(a) > priority(b) : since(a) < since(b);
  });
  std::vector<Budget> left = budgets;
  std::vector<corev1::Pod> guarded, free;
  for (const corev1::Pod& other : lesser) {
    bool breaks = false;
    for (Budget& budget : left) {
      if (budget.ns != other.metadata().namespace_() || budget.disrupted == other.metadata().name()) continue;
      if (!api::LabelSelector::From(budget.selector)->Matches(other.metadata().labels())) continue;
      breaks = --budget.allowed < 0 || breaks;
    }
    (breaks ? guarded : free).push_back(other);
  }
  std::vector<corev1::Pod> go;
  size_t broken = 0;
  for (const auto* group : {&guarded, &free}) {
    for (const corev1::Pod& other : *group) {
      trial.pods.push_back(other);
      if (trial.RefusalWithNominatedPods(pod, node).empty()) continue;
      trial.pods.pop_back();
      go.push_back(other);
      broken += group == &guarded;
    }
  }
  int32_t highest = INT32_MIN;
  int64_t sum = 0, first = INT64_MAX;
  for (const corev1::Pod& other : go) {
    out.names.push_back(other.metadata().name());
    highest = std::max(highest, priority(other));
    sum += priority(other) + int64_t{INT32_MAX} + 1;
  }
  for (const corev1::Pod& other : go) {
    if (priority(other) == highest) first = std::min(first, since(other));
  }
  out.missed = {broken, highest, sum, go.size(), -first};
  return out;
}

}  // namespace keelson::scheduler::testing
