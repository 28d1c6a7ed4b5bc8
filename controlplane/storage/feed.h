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
#include "controlplane/storage/opener.h"
#include "controlplane/storage/revision_gate.h"
#include "lib/base/mutex.h"

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
  Feed(etcd::Client& client, Caches& caches, RevisionGate& gate, Opener& opener)
      : client_(client), caches_(caches), gate_(gate), opener_(opener) {}

  // Until `stop`, through every failure of etcd; ready() once, when the caches are first filled.
  void Run(std::stop_token stop, const std::function<void()>& ready);
  // Reads everything again. From any thread.
  void Reload();

 private:
  Error Watch(std::stop_token stop);
  Result<int64_t> Load(std::stop_token stop);  // everything; the revision
  Result<> LoadOne(ResourceCache& cache, int64_t revision, std::stop_token stop);
  void Apply(etcd::WatchBatch batch);
  Result<ObjectPtr> Read(const api::ResourceInfo& info, std::string_view key, const etcd::KeyValue& kv);

  etcd::Client& client_;
  Caches& caches_;
  RevisionGate& gate_;
  Opener& opener_;
  std::chrono::milliseconds backoff_{0};
  Mutex mutex_;
  std::stop_source watch_ GUARDED_BY(mutex_);
  bool reload_ GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::storage
