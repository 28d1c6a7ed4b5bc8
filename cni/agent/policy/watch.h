// Follows what network policies depend on: all Pods, Namespaces and NetworkPolicies, each trimmed to
// cni/policy/objects.h.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "cni/agent/policy/objects.h"
#include "cni/agent/resources/follow_resource.h"
#include "cni/policy/objects.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::cni::agent {

class PolicyWatch {
 public:
  // `on_change` is called on the threads of Run...(), when all three lists are complete and whenever something
  // that matters changes after that. It must not block.
  PolicyWatch(std::shared_ptr<client::Transport> transport, std::function<void()> on_change,
              Clock& clock = Clock::Real());

  // Each until `stop`, on a thread of its own.
  Result<> RunPods(std::stop_token stop);
  Result<> RunNamespaces(std::stop_token stop);
  Result<> RunPolicies(std::stop_token stop);

  // Calls `use` with the cluster, which does not change meanwhile; false before the first lists are complete.
  bool With(const std::function<void(const policy::Cluster&)>& use) const;

 private:
  template <typename T>
  Result<> Follow(const char* path, std::map<std::string, T, std::less<>> policy::Cluster::*objects,
                  Result<Parsed<T>> (*parse)(std::string_view), bool PolicyWatch::*listed,
                  std::stop_token stop);
  bool Known() const KEELSON_REQUIRES(mutex_) { return pods_ && namespaces_ && policies_; }

  const std::shared_ptr<client::Transport> transport_;
  const std::function<void()> on_change_;
  Clock& clock_;
  mutable Mutex mutex_;
  policy::Cluster cluster_ KEELSON_GUARDED_BY(mutex_);
  // Whether each has been listed.
  bool pods_ KEELSON_GUARDED_BY(mutex_) = false;
  bool namespaces_ KEELSON_GUARDED_BY(mutex_) = false;
  bool policies_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::cni::agent
