// The reflector: lists all of etcd into the watch caches and keeps them up to date by one watch.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "controlplane/etcd/client.h"
#include "controlplane/storage/revision_gate.h"
#include "controlplane/storage/stored_value_decoder.h"
#include "controlplane/storage/watch_caches.h"
#include "lib/base/mutex.h"

namespace keelson::storage {

class Reflector {
 public:
  // References outlive this.
  Reflector(etcd::Client& client, WatchCaches& caches, RevisionGate& gate, StoredValueDecoder& decoder)
      : client_(client), caches_(caches), gate_(gate), decoder_(decoder) {}

  // Lists and watches until `stop`, through every failure of etcd, and then ends all watches on the caches.
  // Calls ready() once, when the caches are filled for the first time. One thread.
  void Run(std::stop_token stop, const std::function<void()>& ready);
  // Makes Run() list everything again. Thread safe.
  void Relist();

 private:
  Error Watch(std::stop_token stop);
  // Lists everything; returns the revision.
  Result<int64_t> List(std::stop_token stop);
  void Apply(etcd::WatchBatch batch);
  etcd::Client& client_;
  WatchCaches& caches_;
  RevisionGate& gate_;
  StoredValueDecoder& decoder_;
  std::chrono::milliseconds backoff_{0};
  Mutex mutex_;
  std::stop_source watch_ KEELSON_GUARDED_BY(mutex_);
  bool relist_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::storage
