// The one watch: fills the caches from etcd and keeps them up to date.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "controlplane/etcd/client.h"
#include "controlplane/storage/cache.h"
#include "controlplane/storage/revision_gate.h"

namespace keelson::storage {

// Every stored resource's cache, by etcd prefix.
class Caches {
 public:
  Caches(ResourceCache::Limits limits, Clock& clock);

  ResourceCache* Of(const api::ResourceInfo& info) const;  // null: not stored
  // The cache that a key of etcd belongs to, and the key inside it; null: none of ours.
  ResourceCache* Route(std::string_view etcd_key, std::string_view& key) const;
  void ForEach(const std::function<void(ResourceCache&)>& each) const;

 private:
  std::map<std::string_view, std::unique_ptr<ResourceCache>> by_prefix_;
};

class Feed {
 public:
  Feed(etcd::Client& client, Caches& caches, RevisionGate& gate)
      : client_(client), caches_(caches), gate_(gate) {}

  // Until `stop`, through every failure of etcd; ready() once, when the caches are first filled.
  void Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  Result<int64_t> Load(std::stop_token stop);  // everything; the revision
  Result<> LoadOne(ResourceCache& cache, int64_t revision, std::stop_token stop);
  void Apply(etcd::WatchBatch batch);

  etcd::Client& client_;
  Caches& caches_;
  RevisionGate& gate_;
};

}  // namespace keelson::storage
