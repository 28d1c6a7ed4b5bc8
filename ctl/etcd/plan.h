// What becomes of an etcd cluster's members: decisions, without I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ctl/host/versions.h"
#include "lib/etcd/member.h"

namespace keelson::ctl {

// A member as the cluster lists it, and what it says of itself.
struct SeenMember {
  etcd::MemberInfo info;  // with --endpoints: only an id, where the endpoint answers
  std::string endpoint;   // where it was asked; empty: it has no client URL yet
  std::optional<etcd::MemberStatus> status;
  std::string error;  // why there is no status

  bool healthy() const { return status && status->leader != 0; }
  bool leads() const { return status && status->leader == status->member_id; }
};
struct EtcdView {
  std::vector<SeenMember> members;  // by name
  std::vector<etcd::Alarm> alarms;
};

// One sentence with the fix for an alarm of etcd.
std::string FixOf(const etcd::Alarm& alarm);

// Endpoints in the order to defragment: the leader last, so that leadership moves no more than once. A member answers
// nothing meanwhile. kUnavailable: with a voter that is not healthy one more would cost the quorum.
Result<std::vector<std::string>> PlanDefragment(const EtcdView& view);

// The member of that name, or of that id in hexadecimal. kNotFound: the message has those that there are. kInvalid: several have
// the name.
Result<SeenMember> FindMember(const EtcdView& view, const std::string& name_or_id);

// Whether `nodectl etcd members remove` takes the member out of the cluster: it is of a machine that is lost. kInvalid: it is the last
// one. kConflict: it answers. kUnavailable: the others would lose their quorum. `force` allows the latter two.
Result<> CheckLost(const EtcdView& view, const SeenMember& member, bool force);

// Whether the cluster keeps a quorum of healthy voters without the member. kUnavailable: it does not.
Result<> CheckRemoval(const EtcdView& view, uint64_t id);

// Whether an etcd of version `own` may become a member beside those that answer. kInvalid: it is older than the cluster's version, which is
// its oldest member's, and would not start; or more than one minor version newer than a member, which its entries could end.
Result<> CheckVersions(const EtcdView& view, const Version& own);

// What a machine with this peer URL has to do to become a member.
struct JoinStep {
  enum class Do { kAdd, kReplace, kStart, kNothing } action = Do::kAdd;  // kReplace: remove `id`, then add
  uint64_t id = 0;
};
// `has_data`: the machine has a data directory of etcd. A started member without its data has lost it: a new one takes its
// place.
JoinStep PlanJoin(const std::vector<etcd::MemberInfo>& members, const std::string& peer_url, bool has_data);
// --initial-cluster for the new member: NAME=PEER-URL of all. Members that have never been started have their id for a name.
std::string InitialCluster(const std::vector<etcd::MemberInfo>& members, const std::string& name,
                           const std::string& peer_url);
// Where clients reach the members, without the one of that peer URL.
std::vector<std::string> ClientUrls(const std::vector<etcd::MemberInfo>& members,
                                    const std::string& without_peer_url = "");

// ---- snapshots in a directory ----

// keelson-etcd-20260131T235959Z.db: sorted by name is sorted by time.
std::string SnapshotName(int64_t unix_seconds);
// The names to remove so that the newest `keep` snapshots stay. Other files are never among them.
std::vector<std::string> Outdated(const std::vector<std::string>& names, size_t keep);
// Parts of snapshots that a kill has left.
std::vector<std::string> Leftovers(const std::vector<std::string>& names);

}  // namespace keelson::ctl
