// Which pod has which address, and which pods a selector picks.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cni/policy/objects.h"

namespace keelson::cni::policy {

// An ADD of a pod on this node (lib/dataplane/policy_sets.h).
struct Attachment {
  std::string uid = {};
  uint32_t epoch = 0;
  bool operator==(const Attachment&) const = default;
};
using Attachments = std::map<IpAddress, Attachment>;

// Pods of the host's network and finished pods have none.
inline bool HasAddresses(const Pod& pod) { return !pod.host_network && !pod.finished; }
// Of two pods that report one address.
bool Younger(const Pod& a, const Pod& b);

// Every address belongs to one pod. On this node that is the attached one; elsewhere the youngest pod that
// reports it.
class Members {
 public:
  Members(const Cluster& cluster, std::string_view node, const Attachments& attachments);

  struct Member {
    const Pod* pod;
    std::vector<IpAddress> addresses = {};
  };
  // The pods of a namespace; empty when it has none.
  const std::vector<Member>& Of(std::string_view ns) const;
  const std::map<std::string_view, std::vector<Member>>& ByNamespace() const { return by_namespace_; }
  // The pods of this node that are attached, by address.
  const std::map<IpAddress, const Pod*>& Attached() const { return attached_; }

  // Calls `each` with every member that the peer's selectors pick, for a policy of namespace `ns`.
  template <typename Each>
  void ForEach(const Cluster& cluster, const std::string& ns, const Peer& peer, Each each) const {
    auto visit = [&](const std::vector<Member>& members) {
      for (const Member& member : members) {
        if (!peer.pods || peer.pods->Matches(member.pod->labels)) each(member);
      }
    };
    if (!peer.namespaces) return visit(Of(ns));
    for (const auto& [name, members] : by_namespace_) {
      auto labels = cluster.namespaces.find(name);
      if (labels != cluster.namespaces.end() && peer.namespaces->Matches(labels->second)) visit(members);
    }
  }

 private:
  std::map<std::string_view, std::vector<Member>> by_namespace_;
  std::map<IpAddress, const Pod*> attached_;
};

// Addresses of this node's pods, within `pod_cidrs`, that no ADD has attached: their pods began before
// policies were enforced. The result names the pods' UIDs.
std::map<IpAddress, std::string> Unattached(const Cluster& cluster, std::string_view node,
                                            const std::vector<IpPrefix>& pod_cidrs,
                                            const Attachments& attachments);

}  // namespace keelson::cni::policy
