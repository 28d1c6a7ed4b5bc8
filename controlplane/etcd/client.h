// etcd v3 over gRPC: what a Kubernetes API server needs of it. Thread safe; calls block.
//
// Debian 12 ships etcd 3.4.23, whose progress notifications may run ahead of events: they are never asked
// for.
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

// When a call must be over. A deadline further away than the client's timeout is brought nearer.
struct Limits {
  SteadyTime deadline = SteadyTime::max();
  std::stop_token stop;
};

struct KeyValue {
  std::string key, value;
  int64_t mod_revision = 0, create_revision = 0, version = 0, lease = 0;
};

struct RangeOptions {
  std::string end;       // exclusive; empty: the one key
  int64_t limit = 0;     // 0: all
  int64_t revision = 0;  // 0: the newest; compacted ones are kGone
  bool keys_only = false, count_only = false;
};

struct RangeResult {
  std::vector<KeyValue> kvs;  // sorted by key
  int64_t revision = 0;       // of the store, when it was read
  int64_t count = 0;          // of keys in the range, whatever the limit
  bool more = false;
};

struct TxnResult {
  bool succeeded = false;
  int64_t revision = 0;             // of the store: of the write, when it succeeded
  std::optional<KeyValue> current;  // when not: what is there
};

struct WatchBatch {
  struct Event {
    bool deleted;
    KeyValue kv;
  };
  // Whole revisions: a revision's events are never split over batches.
  std::vector<Event> events;
  int64_t revision = 0;  // the last of them
};

struct ServerStatus {
  std::string version;
  int64_t db_size = 0, revision = 0;
  bool has_leader = false;
};

struct ClientOptions {
  std::vector<std::string> endpoints;            // unix://path, https://host:port
  std::string ca_pem, certificate_pem, key_pem;  // mutual TLS
  std::chrono::milliseconds timeout{10000};      // of one call
  // What stands in etcd where callers say "/registry": their keys, ranges and events are those of
  // "/registry/...".
  std::string prefix = "/registry";
};

// The key just after all that begin with `prefix`.
std::string PrefixEnd(std::string prefix);

class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();

  // Reads are linearizable, and are tried again on another endpoint while the deadline allows.
  Result<RangeResult> Range(std::string_view key, const RangeOptions& options, const Limits& limits);
  Result<int64_t> Revision(const Limits& limits);

  // Writes if the key's mod revision is `expected` (0: it does not exist). A write whose outcome is
  // unknown is an error kUnavailable or kTimeout: it may have happened.
  Result<TxnResult> PutIf(std::string_view key, std::string_view value, int64_t expected, int64_t lease,
                          const Limits& limits);
  Result<TxnResult> DeleteIf(std::string_view key, int64_t expected, const Limits& limits);
  // The same by the key's version (how often it was written).
  Result<TxnResult> PutIfVersion(std::string_view key, std::string_view value, int64_t version,
                                 const Limits& limits);
  Result<int64_t> GrantLease(std::chrono::seconds ttl, const Limits& limits);
  // Forgets history before `revision`.
  Result<> Compact(int64_t revision, const Limits& limits);
  Result<ServerStatus> Status(const Limits& limits);
  // The whole database of one endpoint, piece by piece, and its SHA-256 after it. Takes what time it takes.
  Result<> Snapshot(const std::function<Result<>(std::string_view)>& each, std::stop_token stop);
  // Gives free space of every endpoint's database back to the file system. An endpoint answers nothing
  // meanwhile.
  Result<> Defragment(const Limits& limits);

  // All changes of [key, end) from `start_revision` on, until `stop` (kCancelled) or failure. kGone: the
  // start is compacted. Events are delivered from this thread; `created` once the watch stands.
  Error Watch(std::string_view key, std::string_view end, int64_t start_revision,
              const std::function<void()>& created, const std::function<void(WatchBatch)>& each,
              std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::etcd
