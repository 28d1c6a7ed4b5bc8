// The sets that clauses name: what makes their elements. Their names follow from the description of their
// contents, so policies share them, and a restarted agent finds those that it made before.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cni/policy/blocks.h"
#include "cni/policy/objects.h"
#include "lib/nft/model.h"

namespace keelson::cni::policy {

// Either elements that never change (ports, blocks), or those of the pods or nodes that a peer picks, or those that the
// cluster's DNS adds (`set.dynamic`).
struct SetSpec {
  nft::Set set = {};
  bool v4 = true;
  std::vector<nft::Element> fixed = {};
  bool of_pods = false, of_nodes = false;
  std::string ns = {};           // where a peer without a namespace selector looks
  Peer peer = {};                // selectors; with a block too, of their pods those with addresses inside
  std::vector<Port> names = {};  // the pods' ports of these names; empty: addresses alone
};
using SetRef = std::shared_ptr<const SetSpec>;

// Whether a set `of_pods` has elements of the pod. `namespace_labels`: null when the namespace is not known.
bool Picks(const SetSpec& spec, const Pod& pod, const Labels* namespace_labels);
// The keys of the elements that one address of a picked pod makes; none twice.
std::vector<std::string> KeysOf(const SetSpec& spec, const Pod& pod, const IpAddress& address);
// The keys of a set `of_nodes`.
std::set<std::string> KeysOf(const SetSpec& spec, const ClusterNodes& nodes);

// Makes the sets of one family. Those with equal contents are one as long as somebody refers to it.
class SetMaker {
 public:
  explicit SetMaker(bool v4) : v4_(v4) {}
  bool v4() const { return v4_; }

  SetRef Ports(const std::vector<PortRange>& ranges);  // protocol . port
  // Addresses of the pods that the peer's selectors pick, for a policy of namespace `ns`.
  SetRef Pods(const std::string& ns, const Peer& peer);
  // address . protocol . port of what those pods call by the names. With a block: of pods anywhere.
  SetRef NamedPorts(const std::string& ns, const Peer& peer, const std::vector<Port>& names);
  // Ranges of address . protocol, or with `ports` of address . protocol . port. `addresses` is not empty.
  SetRef Blocks(std::vector<IpRange> addresses, const std::vector<PortRange>& ports);
  // Addresses of the nodes that the selector picks.
  SetRef Nodes(const Selector& nodes);
  // Addresses of a domain name (Peer::domain), which the cluster's DNS writes.
  SetRef Domain(const std::string& pattern);

 private:
  template <typename Fill>
  SetRef Make(const char* kind, const std::string& description, Fill fill);
  template <typename Fill>
  SetRef MakeNamed(std::string name, Fill fill);
  void Prune();

  const bool v4_;
  std::map<std::string, std::weak_ptr<const SetSpec>> known_;
  size_t prune_at_ = 64;
};

}  // namespace keelson::cni::policy
