#include "cni/agent/policy/watch.h"

#include <string>
#include <utility>
#include <vector>

namespace keelson::cni::agent {

PolicyWatch::PolicyWatch(std::shared_ptr<client::Transport> transport, std::function<void()> on_change,
                         Clock& clock)
    : transport_(std::move(transport)), on_change_(std::move(on_change)), clock_(clock) {}

bool PolicyWatch::With(const std::function<void(policy::Incremental&)>& use) {
  MutexLock lock(mutex_);
  if (!Known()) return false;
  use(plan_);
  return true;
}

template <typename T>
bool PolicyWatch::Replace(const Kind<T>& kind, std::map<std::string, T, std::less<>> found) {
  bool changed = !(this->*kind.listed);
  this->*kind.listed = true;
  std::vector<std::string> gone;
  for (const auto& [key, object] : plan_.cluster().*kind.objects) {
    if (!found.contains(key)) gone.push_back(key);
  }
  for (const std::string& key : gone) (plan_.*kind.erase)(key);
  changed = changed || !gone.empty();
  while (!found.empty()) {
    auto object = found.extract(found.begin());
    const auto& known = plan_.cluster().*kind.objects;
    auto there = known.find(object.key());
    if (there != known.end() && there->second == object.mapped()) continue;
    changed = true;
    (plan_.*kind.put)(object.key(), std::move(object.mapped()));
  }
  return changed;
}

template <typename T>
bool PolicyWatch::Take(const Kind<T>& kind, client::WatchEvent::Type type, Parsed<T> object) {
  const auto& known = plan_.cluster().*kind.objects;
  auto there = known.find(object.key);
  if (type == client::WatchEvent::Type::kDeleted) {
    if (there == known.end()) return false;
    (plan_.*kind.erase)(object.key);
    return true;
  }
  if (there != known.end() && there->second == object.value) return false;
  (plan_.*kind.put)(object.key, std::move(object.value));
  return true;
}

template <typename T>
Result<> PolicyWatch::Follow(const Kind<T>& kind, std::stop_token stop) {
  std::map<std::string, T, std::less<>> found;
  ResourceHandlers handlers;
  handlers.begin_list = [&] { found.clear(); };
  handlers.listed = [&](std::string_view raw) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(Parsed<T> object, kind.parse(raw));
    found.insert_or_assign(std::move(object.key), std::move(object.value));
    return {};
  };
  handlers.end_list = [&] {
    bool tell = false;
    {
      MutexLock lock(mutex_);
      tell = Replace(kind, std::exchange(found, {})) && Known();
    }
    if (tell) on_change_();
  };
  handlers.event = [&](const client::WatchEvent& event) -> Result<std::string> {
    KEELSON_ASSIGN_OR_RETURN(Parsed<T> object, kind.parse(event.raw));
    std::string version = std::move(object.resource_version);
    if (event.type == client::WatchEvent::Type::kBookmark) return version;
    bool tell = false;
    {
      MutexLock lock(mutex_);
      tell = Take(kind, event.type, std::move(object)) && Known();
    }
    if (tell) on_change_();
    return version;
  };
  return FollowResource(ResourceSource(transport_, kind.path), handlers, std::move(stop), clock_);
}

void PolicyWatch::SetClusterPolicies(ClusterPolicyKind kind_of_these, ClusterPolicies found) {
  constexpr size_t kKinds = 3;
  bool tell = false;
  {
    MutexLock lock(mutex_);
    of_kind_[kind_of_these] = std::move(found);
    // A policy of one kind may pass over what one of another kind denies: each counts together with all others.
    if (of_kind_.size() < kKinds) return;
    ClusterPolicies all;
    for (const auto& [of, policies] : of_kind_) all.insert(policies.begin(), policies.end());
    const Kind<policy::ClusterPolicy> kind{"",
                                           &policy::Cluster::cluster_policies,
                                           nullptr,
                                           &policy::Incremental::PutClusterPolicy,
                                           &policy::Incremental::EraseClusterPolicy,
                                           &PolicyWatch::cluster_policies_};
    tell = Replace(kind, std::move(all)) && Known();
  }
  if (tell) on_change_();
}

void PolicyWatch::SetNodes(policy::ClusterNodes nodes) {
  bool tell = false;
  {
    MutexLock lock(mutex_);
    const bool changed = !nodes_ || plan_.cluster().nodes != nodes;
    nodes_ = true;
    if (changed) plan_.SetNodes(std::move(nodes));
    tell = changed && Known();
  }
  if (tell) on_change_();
}

Result<> PolicyWatch::RunPods(std::stop_token stop) {
  return Follow(
      Kind<policy::Pod>{"/api/v1/pods", &policy::Cluster::pods, ParsePod, &policy::Incremental::PutPod,
                        &policy::Incremental::ErasePod, &PolicyWatch::pods_},
      std::move(stop));
}
Result<> PolicyWatch::RunNamespaces(std::stop_token stop) {
  return Follow(Kind<policy::Labels>{"/api/v1/namespaces", &policy::Cluster::namespaces, ParseNamespace,
                                     &policy::Incremental::PutNamespace, &policy::Incremental::EraseNamespace,
                                     &PolicyWatch::namespaces_},
                std::move(stop));
}
Result<> PolicyWatch::RunPolicies(std::stop_token stop) {
  return Follow(Kind<policy::Policy>{"/apis/networking.k8s.io/v1/networkpolicies", &policy::Cluster::policies,
                                     ParsePolicy, &policy::Incremental::PutPolicy,
                                     &policy::Incremental::ErasePolicy, &PolicyWatch::policies_},
                std::move(stop));
}

}  // namespace keelson::cni::agent
