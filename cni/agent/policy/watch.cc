#include "cni/agent/policy/watch.h"

#include <utility>

namespace keelson::cni::agent {

PolicyWatch::PolicyWatch(std::shared_ptr<client::Transport> transport, std::function<void()> on_change,
                         Clock& clock)
    : transport_(std::move(transport)), on_change_(std::move(on_change)), clock_(clock) {}

bool PolicyWatch::With(const std::function<void(const policy::Cluster&)>& use) const {
  MutexLock lock(mutex_);
  if (!Known()) return false;
  use(cluster_);
  return true;
}

template <typename T>
Result<> PolicyWatch::Follow(const char* path,
                             std::map<std::string, T, std::less<>> policy::Cluster::*objects,
                             Result<Parsed<T>> (*parse)(std::string_view), bool PolicyWatch::*listed,
                             std::stop_token stop) {
  std::map<std::string, T, std::less<>> found;
  ResourceHandlers handlers;
  handlers.begin_list = [&] { found.clear(); };
  handlers.listed = [&](std::string_view raw) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(Parsed<T> object, parse(raw));
    found.insert_or_assign(std::move(object.key), std::move(object.value));
    return {};
  };
  handlers.end_list = [&] {
    bool tell = false;
    {
      MutexLock lock(mutex_);
      bool changed = !(this->*listed) || cluster_.*objects != found;
      this->*listed = true;
      cluster_.*objects = std::exchange(found, {});
      tell = changed && Known();
    }
    if (tell) on_change_();
  };
  handlers.event = [&](const client::WatchEvent& event) -> Result<std::string> {
    KEELSON_ASSIGN_OR_RETURN(Parsed<T> object, parse(event.raw));
    if (event.type == client::WatchEvent::Type::kBookmark) return std::move(object.resource_version);
    bool tell = false;
    {
      MutexLock lock(mutex_);
      auto& known = cluster_.*objects;
      auto there = known.find(object.key);
      bool changed = true;
      if (event.type == client::WatchEvent::Type::kDeleted) {
        changed = there != known.end();
        if (changed) known.erase(there);
      } else if (there == known.end()) {
        known.emplace(std::move(object.key), std::move(object.value));
      } else {
        changed = !(there->second == object.value);
        there->second = std::move(object.value);
      }
      tell = changed && Known();
    }
    if (tell) on_change_();
    return std::move(object.resource_version);
  };
  return FollowResource(ResourceSource(transport_, path), handlers, std::move(stop), clock_);
}

Result<> PolicyWatch::RunPods(std::stop_token stop) {
  return Follow<policy::Pod>("/api/v1/pods", &policy::Cluster::pods, ParsePod, &PolicyWatch::pods_,
                             std::move(stop));
}
Result<> PolicyWatch::RunNamespaces(std::stop_token stop) {
  return Follow<policy::Labels>("/api/v1/namespaces", &policy::Cluster::namespaces, ParseNamespace,
                                &PolicyWatch::namespaces_, std::move(stop));
}
Result<> PolicyWatch::RunPolicies(std::stop_token stop) {
  return Follow<policy::Policy>("/apis/networking.k8s.io/v1/networkpolicies", &policy::Cluster::policies,
                                ParsePolicy, &PolicyWatch::policies_, std::move(stop));
}

}  // namespace keelson::cni::agent
