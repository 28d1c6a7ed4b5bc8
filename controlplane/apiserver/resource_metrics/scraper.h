// Scrapes /metrics/resource of every kubelet periodically, as metrics-server does.
#pragma once

#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "controlplane/apiserver/connect/kubelet_client.h"
#include "controlplane/apiserver/resource_metrics/usage_store.h"
#include "controlplane/storage/store.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

class UsageScraper {
 public:
  UsageScraper(storage::Store& store, BackendClients& backends, UsageStore& usage,
               std::chrono::nanoseconds period)
      : store_(store), backends_(backends), usage_(usage), period_(period) {}

  // Scrapes once per period until `stop`. The store must be ready before.
  void Run(std::stop_token stop);

 private:
  void Round(std::stop_token stop);
  // Nodes with a recent heartbeat.
  std::vector<std::string> NodesToAsk() const;
  size_t PutFailingLast(std::vector<std::string>& nodes);
  void AskOne(const std::string& node, std::stop_token stop);
  Result<UsageSample> Ask(const std::string& node, std::stop_token stop);

  storage::Store& store_;
  BackendClients& backends_;
  UsageStore& usage_;
  const std::chrono::nanoseconds period_;
  std::set<std::string> asked_;  // scraped in the previous round
  Mutex mutex_;
  std::set<std::string> failing_ KEELSON_GUARDED_BY(mutex_);  // each failure is logged once
  std::minstd_rand dice_ KEELSON_GUARDED_BY(mutex_){std::random_device{}()};
};

}  // namespace keelson::apiserver
