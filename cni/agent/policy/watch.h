// Follows what network policies depend on: all Pods, Namespaces and NetworkPolicies, each trimmed to
// cni/policy/objects.h. ClusterPolicyWatch and NodeWatch hand in policies of the whole cluster and Nodes. Every event goes
// into the plan on the thread that it comes by.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>

#include "cni/agent/policy/cluster_policy.h"
#include "cni/agent/policy/objects.h"
#include "cni/agent/resources/follow_resource.h"
#include "cni/policy/incremental.h"
#include "cni/policy/objects.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::cni::agent {

class PolicyWatch {
 public:
  // `on_change` is called on the threads of Run...(), when all lists are complete and whenever something
  // that matters changes after that. It must not block.
  PolicyWatch(std::shared_ptr<client::Transport> transport, std::function<void()> on_change,
              Clock& clock = Clock::Real());

  // Each until `stop`, on a thread of its own.
  Result<> RunPods(std::stop_token stop);
  Result<> RunNamespaces(std::stop_token stop);
  Result<> RunPolicies(std::stop_token stop);

  // All Nodes, as peers. The list is complete.
  void SetNodes(policy::ClusterNodes nodes);

  using ClusterPolicies = std::map<std::string, policy::ClusterPolicy, std::less<>>;
  // The policies of the whole cluster of one kind, all of them.
  void SetClusterPolicies(ClusterPolicyKind kind, ClusterPolicies found);

  // Calls `use` with the plan, to which no events come meanwhile; false before the first lists are complete.
  bool With(const std::function<void(policy::Incremental&)>& use);

 private:
  // A kind of objects, and how the plan takes them.
  template <typename T>
  struct Kind {
    const char* path;
    std::map<std::string, T, std::less<>> policy::Cluster::*objects;
    Result<Parsed<T>> (*parse)(std::string_view);
    void (policy::Incremental::*put)(const std::string&, T);
    void (policy::Incremental::*erase)(const std::string&);
    bool PolicyWatch::*listed;
  };
  template <typename T>
  Result<> Follow(const Kind<T>& kind, std::stop_token stop);
  // Takes over a complete list; false if it is what was known.
  template <typename T>
  bool Replace(const Kind<T>& kind, std::map<std::string, T, std::less<>> found) KEELSON_REQUIRES(mutex_);
  template <typename T>
  bool Take(const Kind<T>& kind, client::WatchEvent::Type type, Parsed<T> object) KEELSON_REQUIRES(mutex_);
  bool Known() const KEELSON_REQUIRES(mutex_) {
    return pods_ && namespaces_ && policies_ && cluster_policies_ && nodes_;
  }

  const std::shared_ptr<client::Transport> transport_;
  const std::function<void()> on_change_;
  Clock& clock_;
  Mutex mutex_;
  policy::Incremental plan_ KEELSON_GUARDED_BY(mutex_);
  // Whether each has been listed.
  bool pods_ KEELSON_GUARDED_BY(mutex_) = false;
  bool namespaces_ KEELSON_GUARDED_BY(mutex_) = false;
  bool policies_ KEELSON_GUARDED_BY(mutex_) = false;
  bool cluster_policies_ KEELSON_GUARDED_BY(mutex_) = false;  // those of each kind
  bool nodes_ KEELSON_GUARDED_BY(mutex_) = false;
  std::map<ClusterPolicyKind, ClusterPolicies> of_kind_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::cni::agent
