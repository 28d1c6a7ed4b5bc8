// What should be in the proxy's nftables table of one address family. Pure: no kernel, no clock.
//
// SetService replaces what one Service contributes; TakeChanges gives the transaction that brings a kernel
// from the state of the last call to the present one, and costs what has changed, not what there is.
//
// Two Services may claim one address and port (an external IP, say): the first keeps it, and the next one
// gets it when the first has gone. Slots are stable: an endpoint that goes is replaced by the last one of
// the list, so that a change of one endpoint touches at most two slots. With session affinity it leaves a
// hole instead, which the next new endpoint fills.
//
// To make a pick chain costs as much as there is in the maps that it speaks of, for the kernel walks them. So
// there is a stock of common ones, and one that nobody uses any more stays for a while: a Service that has
// lost an endpoint will have it again soon.
//
// A Service that the kernel refuses can be held: it contributes nothing until it is released or set anew.
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
  void SetNodeIps(const std::vector<IpAddress>& ips);        // where NodePorts answer
  void SetServiceCidrs(const std::vector<IpPrefix>& cidrs);  // what cluster IPs are allocated from
  // Where IPVS translates: an address that is this node's own, and on which only Services are to be reached.
  void Guard(const IpAddress& ip, bool on);

  void Hold(const std::string& key);
  void Release(const std::string& key);
  std::vector<std::string> Held() const;
  // Services set or released since the last Settle(): that is, since the kernel last took what this plan
  // wants.
  std::vector<std::string> Unsettled() const { return {unsettled_.begin(), unsettled_.end()}; }
  void Settle() { unsettled_.clear(); }

  nft::Transaction TakeChanges();
  // For who brings the kernel to Wanted() by comparison: changes are noted from there on. Pick chains without
  // users are not wanted any more, but for the stock.
  void StartOver();
  // Until then no changes are noted, which would lie in memory between what stays.
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
  // As it was at the last TakeChanges, of what has been touched since.
  using Before = std::unordered_map<std::string, std::optional<Datum>>;
  Before before_[kSetCount];
  std::set<PickSpec> installed_picks_;
  std::vector<PickSpec> dispatched_[2];  // to Services' addresses, to NodePorts
  std::vector<PickSpec> idle_picks_;     // installed, and without users; the longest of them first
  std::vector<IpAddress> node_ips_;
  std::vector<IpPrefix> service_cidrs_;
  bool service_cidrs_changed_ = false;
  bool noting_ = true;
  std::set<std::string> unsettled_;
  std::unordered_map<std::string, Contribution> held_;
};

}  // namespace keelson::proxy::nftables
