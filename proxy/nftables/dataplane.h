// Services by nftables alone: keeps one address family's table in the kernel equal to a Plan.
#pragma once

#include <memory>

#include "lib/nft/kernel.h"
#include "proxy/model/dataplane.h"
#include "proxy/nftables/plan.h"

namespace keelson::proxy::nftables {

class Dataplane final : public proxy::Dataplane {
 public:
  Dataplane(std::unique_ptr<nft::Kernel> kernel, Options options);

  Plan& plan() { return plan_; }
  bool v4() const override { return plan_.options().v4; }
  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports) override {
    plan_.SetService(key, ports);
  }
  void SetNodeIps(const std::vector<IpAddress>& ips) override { plan_.SetNodeIps(ips); }
  void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) override { plan_.SetServiceCidrs(cidrs); }

  // Writes the plan to the kernel. The first call, and the first one after a failure, read the table and write the
  // difference; other calls write the plan's changes. Large transactions are split. Services that the kernel
  // refuses are found by bisection and held until they change or until OnPeriod().
  Result<SyncStats> Sync() override;
  // Checks whether another program has changed any table, and repairs this one.
  Result<SyncStats> Verify() override;
  void Distrust() override { in_step_ = false; }
  void OnPeriod() override;
  size_t Refused() const override { return plan_.Held().size(); }
  std::vector<OwnTable> Tables() const override { return {{plan_.options().Table(), kernel_->port()}}; }
  // Creates the table without Services if it does not exist. Fails where the kernel lacks the family.
  Result<> Probe() override;
  // Removes the table at once, if it exists. Conntrack keeps translated connections.
  Result<std::optional<std::chrono::milliseconds>> Retire() override;
  // Removes the table; absent is fine.
  static Result<> Remove(nft::Kernel& kernel, const nft::Table& table);

 private:
  Result<SyncStats> Incremental();
  Result<SyncStats> FullSync();
  Result<SyncStats> Compare();  // and writes the difference
  Result<SyncStats> Isolate();
  Result<> Admit(const std::string* first, const std::string* last, SyncStats& total);
  std::unique_ptr<nft::Kernel> kernel_;
  Plan plan_;
  bool in_step_ = false;
  uint32_t generation_ = 0;  // of the kernel's ruleset after the last write of this program; 0: unknown
};

using OpenKernel = std::function<Result<std::unique_ptr<nft::Kernel>>()>;
// `options` with the Node's pod CIDRs of that family, if they are known.
Options WithPods(Options options, const std::optional<std::vector<IpPrefix>>& pod_cidrs);
DataplaneMode Mode(Options v4, Options v6, OpenKernel open_kernel);

}  // namespace keelson::proxy::nftables
