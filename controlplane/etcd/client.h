// etcd v3 over gRPC, as far as a Kubernetes API server needs it. Thread safe; calls block.
//
// Never requests progress notifications: in Debian 12's etcd 3.4.23 they may run ahead of events.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::etcd {

// When a call must end. A deadline further away than the client's timeout is shortened to it.
struct Limits {
  SteadyTime deadline = SteadyTime::max();
  std::stop_token stop;
};

struct KeyValue {
  std::string key, value;
  int64_t mod_revision = 0, create_revision = 0, version = 0, lease = 0;
};

struct RangeOptions {
  std::string end;       // exclusive; empty: a single key
  int64_t limit = 0;     // 0: all
  int64_t revision = 0;  // 0: the newest; kGone for a compacted one
  bool keys_only = false, count_only = false;
};

struct RangeResult {
  std::vector<KeyValue> kvs;  // sorted by key
  int64_t revision = 0;       // of the store at the time of the read
  int64_t count = 0;          // of keys in the range, regardless of the limit
  bool more = false;
};

struct TxnResult {
  bool succeeded = false;
  int64_t revision = 0;             // of the store; after a success, that of the write
  std::optional<KeyValue> current;  // on failure: the key as stored
};

// Another key that a write relies on, and the mod revision that this key has to have still.
struct Guard {
  std::string key;
  int64_t mod_revision = 0;
};

struct WatchBatch {
  struct Event {
    bool deleted;
    KeyValue kv;
  };
  // Whole revisions: events of one revision always come in one batch.
  std::vector<Event> events;
  int64_t revision = 0;  // the newest in the batch
};

struct ServerStatus {
  std::string version;
  int64_t db_size = 0, revision = 0;
  bool has_leader = false;
};

struct ClientOptions {
  std::vector<std::string> endpoints;            // unix://path, https://host:port
  std::string ca_pem, certificate_pem, key_pem;  // mutual TLS
  std::chrono::milliseconds timeout{10000};      // for one call
  // The prefix in etcd that callers see as "/registry": keys, ranges and events all use "/registry/...".
  std::string prefix = "/registry";
};

// The first key after all keys that begin with `prefix`.
std::string PrefixEnd(std::string prefix);

class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();

  // Ends the calls that wait for etcd, and every later one, with kUnavailable: for a process that stops while etcd does not
  // answer (end_of_process.h). Snapshot() and Defragment() go on.
  void Close();

  // Reads are linearizable. The client retries them on other endpoints until the deadline.
  Result<RangeResult> Range(std::string_view key, const RangeOptions& options, const Limits& limits);
  Result<int64_t> Revision(const Limits& limits);

  // Writes if the key's mod revision is `expected` (0: the key does not exist) and the guard, where there is one, holds.
  // `lease` 0: none. A write with an unknown outcome is kUnavailable or kTimeout: it may have happened.
  Result<TxnResult> PutIf(std::string_view key, std::string_view value, int64_t expected, int64_t lease,
                          const Limits& limits, const Guard* guard = nullptr);
  // Deletes the key if its mod revision is `expected`.
  Result<TxnResult> DeleteIf(std::string_view key, int64_t expected, const Limits& limits);
  // Like PutIf(), by the key's version (how often it was written).
  Result<TxnResult> PutIfVersion(std::string_view key, std::string_view value, int64_t version,
                                 const Limits& limits);
  Result<int64_t> GrantLease(std::chrono::seconds ttl, const Limits& limits);
  // Discards history before `revision`. kGone: already compacted further.
  Result<> Compact(int64_t revision, const Limits& limits);
  Result<ServerStatus> Status(const Limits& limits);
  // Streams the whole database of one endpoint, followed by its SHA-256. There is no deadline.
  Result<> Snapshot(const std::function<Result<>(std::string_view)>& each, std::stop_token stop);
  // Returns free space in every endpoint's database to the file system. An endpoint answers nothing in the
  // meantime.
  Result<> Defragment(const Limits& limits);

  // Delivers all changes of [key, end) from `start_revision` on, until `stop` (kCancelled) or a failure.
  // kGone: the start is compacted. Calls `created` once the watch is established and `each` for every
  // batch, on this thread.
  Error Watch(std::string_view key, std::string_view end, int64_t start_revision,
              const std::function<void()>& created, const std::function<void(WatchBatch)>& each,
              std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::etcd
