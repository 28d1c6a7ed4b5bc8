// Feeds watch caches into derived indexes (RBAC, node graph, flow schemas).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "controlplane/storage/store.h"

namespace keelson::apiserver {

class Reflector {
 public:
  struct Subscription {
    const api::ResourceInfo* info;
    // Called from storage threads, one call at a time per subscription; must not block.
    std::function<void(const storage::ObjectPtr& object)> put;
    std::function<void(const std::string& key)> remove;
  };
  explicit Reflector(storage::Store& store);
  ~Reflector();
  void Add(Subscription subscription);  // before Run
  // Subscribes, calls ready() once all initial states are delivered, and resubscribes when a watch ends. Runs
  // until `stop`.
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
