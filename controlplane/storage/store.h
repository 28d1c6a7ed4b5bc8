// The API server's view of etcd: one watch over the whole keyspace, demultiplexed into one cache for each resource.
// Reads use the caches; a consistent read first waits until the watch has passed etcd's revision. Writes are
// compare-and-swap transactions. Thread safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/etcd/client.h"
#include "controlplane/storage/encryption.h"
#include "controlplane/storage/master_leases.h"
#include "controlplane/storage/object.h"
#include "controlplane/storage/range_allocations.h"
#include "lib/api/scheme.h"
#include "lib/api/selector.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::storage {

using etcd::Limits;  // deadline and cancellation of a call

struct Predicate {
  api::LabelSelector labels;
  api::FieldSelector fields;  // only fields that the kind supports
  bool IsEverything() const { return labels.IsEverything() && fields.IsEverything(); }
};

struct ListRequest {
  std::string_view ns;    // empty: all
  std::string_view name;  // only this object; `ns` is then given unless the resource has none
  Predicate predicate;
  std::string resource_version, match;  // match: "", NotOlderThan or Exact
  int64_t limit = 0;
  std::string continue_token;
};

struct ListResult {
  std::vector<ObjectPtr> items;
  int64_t revision = 0;
  std::string continue_token;
  std::optional<int64_t> remaining;
};

struct WatchRequest {
  std::string ns;
  Predicate predicate;
  std::string resource_version;
  bool bookmarks = false;
  bool initial_events = false;      // first, synthetic ADDED events of all existing objects
  bool initial_events_end = false;  // and a marked bookmark after them
};

// Number and stored size of a resource's objects.
struct Size {
  size_t objects = 0, bytes = 0;
};

// The result of a write that lost a race: the stored object.
struct Conflict {
  ObjectPtr current;                // null: it does not exist
  bool precondition_fails = false;  // the object is as expected; what the write relies on is not
};

// Another object that a write relies on: it has to be stored in this revision still.
struct Precondition {
  const api::ResourceInfo& info;
  std::string key;
  int64_t revision = 0;
};

class Store {
 public:
  struct Options {
    size_t history_events = 2048;    // a resource
    size_t history_bytes = 4 << 20;  // a resource
    std::chrono::seconds bookmark_period{60};
    std::chrono::seconds compact_period{300};  // 0: never
    std::shared_ptr<Encryption> encryption;    // null: no encryption
    bool reload_encryption = false;            // when its file changes
    bool json = false;                         // writes JSON rather than protobuf; both are read
  };

  Store(std::shared_ptr<etcd::Client> client, Options options, Clock& clock = Clock::Real());
  ~Store();

  // Fills the caches, calls ready(), then follows etcd until `stop`. Continues after failures of etcd.
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);
  bool ready() const;
  int64_t revision() const;  // the revision of the caches

  // ---- reads; `info` is a main resource; objects come in its group and version ----
  // null: it does not exist. With "" the read is linearizable.
  Result<ObjectPtr> Get(const api::ResourceInfo& info, std::string_view key,
                        std::string_view resource_version, const Limits& limits);
  // The cache's current object, without waiting.
  ObjectPtr Peek(const api::ResourceInfo& info, std::string_view key) const;
  void ForEach(const api::ResourceInfo& info, const std::function<void(const ObjectPtr&)>& each) const;
  // The same of one namespace, by name.
  void ForEachIn(const api::ResourceInfo& info, std::string_view ns,
                 const std::function<void(const ObjectPtr&)>& each) const;
  Size SizeOf(const api::ResourceInfo& info) const;
  Result<ListResult> List(const api::ResourceInfo& info, const ListRequest& request, const Limits& limits);
  Result<std::unique_ptr<WatchHandle>> Watch(const api::ResourceInfo& info, const WatchRequest& request,
                                             std::shared_ptr<WatchSink> sink, const Limits& limits);

  // Fills the cache of a custom resource unless it is there: reads do that too, but watches can start no earlier.
  Result<> Ensure(const api::ResourceInfo& info, const Limits& limits);
  // Reads the objects of a custom resource again, after a change of its definition that shows in them. Watches go on;
  // the past of the resource keeps its form.
  Result<> Refresh(const api::ResourceInfo& info, const Limits& limits);

  // Ends all watches on a custom resource with kCancelled.
  void EndWatches(const api::ResourceInfo& info);

  // ---- writes; `message` has no resourceVersion; `expected` 0: must not exist ----
  // Returns the stored object. kConflict after a lost race, with the stored object in `conflict`.
  // A precondition is part of the transaction.
  Result<ObjectPtr> Put(const api::ResourceInfo& info, std::string_view key, const api::Message& message,
                        int64_t expected, std::chrono::seconds ttl, Conflict& conflict, const Limits& limits,
                        const Precondition* precondition = nullptr);
  // Whether a write would store the object differently now: with another key, or in another form. Then even a write
  // without changes is useful.
  bool IsStale(const api::ResourceInfo& info, const Object& object, const Limits& limits);
  // Returns the revision of the deletion.
  Result<int64_t> Delete(const api::ResourceInfo& info, std::string_view key, int64_t expected,
                         Conflict& conflict, const Limits& limits);
  // Removes an object that cannot be decrypted or decoded. false: it is readable, or it does not exist.
  // kUnavailable: unknown, since a KMS does not answer.
  Result<bool> DeleteUnreadable(const api::ResourceInfo& info, std::string_view key, const Limits& limits);

  // Values that are no resources of the API. The store owns both.
  RangeAllocations& ranges();
  MasterLeases& master_leases();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::storage
