// Follows watch caches into whatever keeps a digest of them (the RBAC index).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "controlplane/storage/store.h"

namespace keelson::apiserver {

class Follower {
 public:
  struct Subscription {
    const api::ResourceInfo* info;
    // Called one at a time a subscription, from storage threads; must not block.
    std::function<void(const storage::ObjectPtr& object)> put;
    std::function<void(const std::string& key)> remove;
  };
  explicit Follower(storage::Store& store);
  ~Follower();
  void Add(Subscription subscription);  // before Run
  // Subscribes, calls ready() once all first states have been delivered, and subscribes again whenever a
  // watch ends.
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  class Sink;
  struct Signal;
  Result<> Subscribe(size_t index);

  storage::Store& store_;
  std::vector<Subscription> subscriptions_;
  std::vector<std::shared_ptr<Sink>> sinks_;
  std::vector<std::unique_ptr<storage::WatchHandle>> handles_;
  std::shared_ptr<Signal> signal_;
};

}  // namespace keelson::apiserver
