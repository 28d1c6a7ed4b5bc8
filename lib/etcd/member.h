// One member of an etcd v3 cluster (3.4 and later), for who looks after the cluster: its status, the membership, alarms,
// defragmentation, snapshots. The API server's own client is controlplane/etcd. Calls block; one thread at a time.
//
// Source: etcd's rpc.proto (services Cluster and Maintenance), https://etcd.io/docs/v3.5/op-guide/runtime-configuration/
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::etcd {

// How members are reached: mutual TLS for https:// endpoints. All empty: none.
struct Access {
  std::string ca_pem, certificate_pem, key_pem;
  std::chrono::milliseconds timeout{10000};  // to connect, and for one call
};

struct MemberInfo {
  uint64_t id = 0;
  std::string name;  // empty: it has never been started
  std::vector<std::string> peer_urls, client_urls;
  bool learner = false;  // has no vote
  bool started() const { return !name.empty(); }
};

struct MemberStatus {
  uint64_t cluster_id = 0, member_id = 0;
  uint64_t leader = 0;  // 0: there is none
  uint64_t raft_term = 0, raft_index = 0, raft_applied_index = 0;
  int64_t revision = 0;
  int64_t db_size = 0, db_size_in_use = 0;  // bytes
  std::string version;                      // 3.5.16
  bool learner = false;
  std::vector<std::string> errors;
};

struct Alarm {
  uint64_t member_id = 0;
  std::string kind;  // etcd's names: NOSPACE, CORRUPT
};

std::string MemberId(uint64_t id);  // in hexadecimal, as etcdctl prints it

class Member {
 public:
  // `url`: unix:///path, http://host:port or https://host:port. Connects at the first call.
  Member(std::string url, const Access& access);
  ~Member();
  Member(Member&&) noexcept;

  const std::string& url() const { return url_; }

  // kUnavailable, kTimeout: the member does not answer. A member without a leader still tells its status.
  Result<MemberStatus> Status();
  Result<std::vector<MemberInfo>> Members();
  Result<std::vector<Alarm>> Alarms();
  Result<> Disarm(const Alarm& alarm);
  // Returns free space of this member's database to the file system. The member answers nothing else meanwhile.
  Result<> Defragment(std::stop_token stop = {});
  // Streams the member's database, followed by its SHA-256. There is no deadline.
  Result<> Snapshot(const std::function<Result<>(std::string_view)>& each, std::stop_token stop = {});

  // ---- membership: any member takes these, and they need a quorum ----

  // Adds a member without a vote; its id. A cluster has one learner at a time: kTooManyRequests, kConflict otherwise.
  Result<uint64_t> AddLearner(const std::string& peer_url);
  // Gives a learner its vote. kConflict: it has not caught up with the leader yet.
  Result<> Promote(uint64_t id);
  // kNotFound: no such member. etcd refuses what would cost the quorum.
  Result<> Remove(uint64_t id);
  // Where peers reach the member from now on. It has to listen there already.
  Result<> SetPeerUrls(uint64_t id, const std::vector<std::string>& peer_urls);

 private:
  struct Impl;
  std::string url_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::etcd
