// Services by eBPF: clients on this node are served at their sockets (datapath.h), external traffic at the
// devices (devices.h). The rules of mode nftables, in a table of their own, masquerade, refuse and drop, and
// serve what cannot be decided there: pods that have to be masqueraded, cluster IPs from outside the cluster,
// SCTP.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "proxy/ebpf/datapath.h"
#include "proxy/model/dataplane.h"
#include "proxy/nftables/dataplane.h"

namespace keelson::proxy::ebpf {

class Dataplane final : public proxy::Dataplane {
 public:
  // `packets`: options of the table below. `devices`: of the same family.
  Dataplane(std::unique_ptr<nft::Kernel> kernel, nftables::Options packets, DatapathOptions datapath,
            std::unique_ptr<Devices> devices);

  bool v4() const override { return packets_.v4(); }
  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports) override;
  void SetNodeIps(const std::vector<IpAddress>& ips) override;
  void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) override { packets_.SetServiceCidrs(cidrs); }
  void SetOwnIps(const std::vector<IpAddress>&) override { datapath_.LookAtDevices(); }
  Result<> Probe() override { return packets_.Probe(); }
  // Writes the rules first: they serve what sockets do not serve yet.
  Result<SyncStats> Sync() override;
  Result<SyncStats> Verify() override;
  void Distrust() override;
  void OnPeriod() override {
    packets_.OnPeriod();
    datapath_.LookAtPrograms();
  }
  size_t Refused() const override { return packets_.Refused(); }
  std::vector<OwnTable> Tables() const override { return packets_.Tables(); }
  // Open connections of this node's clients go to endpoints' own addresses and need nothing. Connections of
  // external traffic are served until they end.
  Result<std::optional<std::chrono::milliseconds>> Retire() override;

 private:
  Result<SyncStats> WithDatapath(Result<SyncStats> stats);
  nftables::Dataplane packets_;
  Plan plan_;
  Datapath datapath_;
};

// How external traffic is served: see DeviceOptions and DatapathOptions.
struct ExternalTrafficOptions {
  std::vector<std::string> devices;
  bool direct = false, dsr = false;
  std::vector<std::string> xdp = {"off"};
};

// The mode for the proxier. `table` of `v4` and `v6` is that of mode nftables.
DataplaneMode Mode(nftables::Options v4, nftables::Options v6, nftables::OpenKernel open_kernel,
                   std::string cgroup, std::string pin_directory, ExternalTrafficOptions external,
                   MapSizes map_sizes = {});

// The table below, by the name of mode nftables' table.
std::string TableName(const std::string& nftables_table);

}  // namespace keelson::proxy::ebpf
