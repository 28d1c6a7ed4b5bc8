// The desired contents of the proxy's nftables table of one address family. Pure: no kernel, no clock.
//
// SetService replaces the contribution of one Service. TakeChanges returns the transaction from the state of its
// last call to the current one; its cost depends on the changes, not on the size of the table.
//
// Two Services may claim one address and port (an external IP, say): the first keeps it, and the next one
// gets it when the first is gone. Slots are stable: the last endpoint of the list replaces a removed one, so that
// a change of one endpoint touches at most two slots. With session affinity a removed endpoint leaves a hole
// instead, which the next new endpoint fills.
//
// The cost of a new pick chain grows with the maps that it reads, since the kernel walks them. Therefore the
// table has a stock of common chains, and an unused one stays for a while: a Service that has lost an endpoint
// usually gets it back soon.
//
// A Service that the kernel refuses can be held: it contributes nothing until it is released or set again.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/nft/transaction.h"
#include "proxy/nftables/claims.h"
#include "proxy/nftables/contribution.h"

namespace keelson::proxy::nftables {

class Plan {
 public:
  explicit Plan(Options options);

  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports);  // no ports: gone
  void ForgetServices();
  void SetNodeIps(const std::vector<IpAddress>& ips);        // addresses with NodePorts
  void SetServiceCidrs(const std::vector<IpPrefix>& cidrs);  // the ranges of cluster IPs
  // Where IPVS translates: an address of this node that must reach Services only.
  void Guard(const IpAddress& ip, bool on);

  void Hold(const std::string& key);
  void Release(const std::string& key);
  std::vector<std::string> Held() const;
  // Services set or released since the last Settle(), i.e. since the kernel last accepted this plan.
  std::vector<std::string> Unsettled() const { return {unsettled_.begin(), unsettled_.end()}; }
  void Settle() { unsettled_.clear(); }

  nft::Transaction TakeChanges();
  // For callers that bring the kernel to Wanted() by comparison: the plan records changes from here on. Unused
  // pick chains beyond the stock are no longer wanted.
  void StartOver();
  // Until then the plan records no changes, which would fragment its memory.
  void AwaitStart() { noting_ = false; }
  nft::Ruleset Wanted() const;
  const Options& options() const { return options_; }
  size_t size() const;  // elements

 private:
  struct Owner {
    std::vector<std::pair<SetId, const std::string*>> keys;  // sorted; the strings are those of claims_
    std::vector<PickSpec> picks;
    EndpointSlotsByPort slots;
  };

  class Changes;
  void Replace(Owner& owner, Contribution now);
  Contribution Present(const Owner& owner);
  void Touch(SetId set, const std::string& key);
  static nft::Element ElementOf(SetId set, const std::string& key, const Datum& datum);
  bool IsIdle(const PickSpec& spec) const;
  std::vector<PickSpec> Specs(bool node_port) const;

  const Options options_;
  std::unordered_map<std::string, Owner> owners_;
  std::unordered_map<IpAddress, Owner> guarded_;
  Owner node_;
  std::unordered_map<std::string, Claims> claims_[kSetCount];
  std::map<PickSpec, int> picks_;  // users
  // The state at the last TakeChanges of all that has changed since.
  using Before = std::unordered_map<std::string, std::optional<Datum>>;
  Before before_[kSetCount];
  std::set<PickSpec> installed_picks_;
  std::vector<PickSpec> dispatched_[2];  // to Services' addresses, to NodePorts
  std::vector<PickSpec> idle_picks_;     // installed but unused; the longest unused first
  std::vector<IpAddress> node_ips_;
  std::vector<IpPrefix> service_cidrs_;
  bool service_cidrs_changed_ = false;
  bool noting_ = true;
  std::set<std::string> unsettled_;
  std::unordered_map<std::string, Contribution> held_;
};

}  // namespace keelson::proxy::nftables
