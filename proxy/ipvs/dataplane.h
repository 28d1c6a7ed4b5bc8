// Services by IPVS, in one address family: virtual servers for their addresses and NodePorts, the addresses
// themselves on a device of this node's own (kube-ipvs0), and an nftables table (proxy/nftables, with
// Options::ipvs) for what IPVS does not do: masquerading, refusing, source ranges, guarding the addresses.
//
// A change is written in the order rules, servers, addresses, so that no traffic passes before the rules are
// there. TCP destinations drain: one that is not wanted any more gets weight 0, and is removed when it has no
// connection left; its server and its address stay until then. UDP destinations are removed at once. Virtual
// servers at addresses in `excluded` are left alone, as with upstream's excludeCIDRs.
//
// The kernel sends no notification when other programs change virtual servers: once a sync period all of them
// are read in one request and compared with what has been written. Verify() reads each one.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proxy/ipvs/kernel.h"
#include "proxy/ipvs/plan.h"
#include "proxy/model/dataplane.h"
#include "proxy/nftables/dataplane.h"

namespace keelson::proxy::ipvs {

struct Options {
  std::string scheduler = "rr";
  uint32_t scheduler_flags = 0;
  std::vector<IpPrefix> excluded;
  std::chrono::milliseconds drain_interval{10000};  // between two checks of what drains
};

class Dataplane final : public proxy::Dataplane {
 public:
  // `rules`: options of the table; the constructor sets rules.ipvs.
  Dataplane(std::unique_ptr<Kernel> kernel, std::unique_ptr<nft::Kernel> nft, Options options,
            nftables::Options rules);

  bool v4() const override { return rules_.v4(); }
  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports) override;
  void SetNodeIps(const std::vector<IpAddress>& ips) override;
  void SetOwnIps(const std::vector<IpAddress>& ips) override { plan_.SetOwnIps(ips); }
  void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) override { rules_.SetServiceCidrs(cidrs); }
  Result<> Probe() override { return rules_.Probe(); }
  Result<SyncStats> Sync() override;
  Result<SyncStats> Verify() override;
  void Distrust() override { rules_.Distrust(); }
  void OnPeriod() override;
  size_t Refused() const override { return rules_.Refused() + refused_.size(); }
  std::vector<OwnTable> Tables() const override { return rules_.Tables(); }
  Result<std::optional<std::chrono::milliseconds>> Retire() override;

 private:
  Result<> Look();
  bool IsOurs(const IpAddress& ip) const;
  Result<SyncStats> Write();
  Result<bool> IsInStep();
  bool IsAsWritten(const netlink::ListedServer& listed) const;
  void NotePlan();
  void Guard(const IpAddress& ip, bool on);
  Result<> SyncRules(SyncStats& stats);
  Result<> WriteServers(SyncStats& stats);
  Result<> WriteServer(const ServerAddress& address, size_t& operations);
  Result<> WriteDestinations(const ServerAddress& address, const Server* wanted, bool fresh,
                             size_t& operations, bool& left);
  Result<> WriteAddresses(SyncStats& stats);
  bool HasServer(const IpAddress& ip) const;
  bool InUse(const IpAddress& ip) const { return HasServer(ip) || sources_.contains(ip); }
  bool Wants(const IpAddress& ip) const { return !retiring_ && plan_.Bound(ip); }

  const std::unique_ptr<Kernel> kernel_;
  const Options options_;
  nftables::Dataplane rules_;
  Plan plan_;
  bool in_step_ = false;  // what follows is what the kernel has
  bool retiring_ = false;
  bool look_ = false;                                      // whether others have changed servers or addresses
  std::map<ServerAddress, std::chrono::seconds> present_;  // and their affinity; negative: otherwise unlike
  std::set<IpAddress> bound_;
  std::set<ServerAddress> pending_, draining_, refused_;  // to be looked at: now, later, when asked to
  std::set<IpAddress> pending_ips_;
  std::set<ServerAddress> gone_;  // UDP servers removed since flows were last forgotten; retiring only
  std::set<IpAddress> sources_;   // of this node's own connections; retiring only
  bool guards_changed_ = false;
};

}  // namespace keelson::proxy::ipvs
