// Services by eBPF: clients on this node are served at their sockets (sockets.h), and who comes from outside
// at the devices (devices.h). The rules of mode nftables, in a table of its own, masquerade, refuse and drop,
// and serve what cannot be decided there (pods that would have to be masqueraded, cluster IPs from outside,
// SCTP).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "proxy/ebpf/sockets.h"
#include "proxy/model/dataplane.h"
#include "proxy/nftables/dataplane.h"

namespace keelson::proxy::ebpf {

class Dataplane final : public proxy::Dataplane {
 public:
  // `packets`: its options say which table. `sockets`: of the same family.
  Dataplane(std::unique_ptr<nft::Kernel> kernel, nftables::Options packets, SocketOptions sockets,
            std::unique_ptr<Devices> devices);

  bool v4() const override { return packets_.v4(); }
  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports) override;
  void SetNodeIps(const std::vector<IpAddress>& ips) override;
  void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) override { packets_.SetServiceCidrs(cidrs); }
  void SetOwnIps(const std::vector<IpAddress>&) override { sockets_.LookAtDevices(); }
  Result<> Probe() override { return packets_.Probe(); }
  // The rules first: what sockets do not serve yet meets them.
  Result<SyncStats> Sync() override;
  Result<SyncStats> Verify() override;
  void Distrust() override;
  void OnPeriod() override {
    packets_.OnPeriod();
    sockets_.LookAtPrograms();
  }
  size_t Refused() const override { return packets_.Refused(); }
  std::vector<OwnTable> Tables() const override { return packets_.Tables(); }
  // Open connections of this node's clients go to endpoints' own addresses and need nothing. Those from
  // outside are served until they end.
  Result<std::optional<std::chrono::milliseconds>> Retire() override;

 private:
  Result<SyncStats> WithSockets(Result<SyncStats> stats);
  nftables::Dataplane packets_;
  Plan plan_;
  Sockets sockets_;
};

// Which devices serve who comes from outside, and how: see DeviceOptions.
struct OutsideOptions {
  std::vector<std::string> devices;
  bool direct = false, dsr = false;
  std::vector<std::string> fast = {"off"};
};

// `table` of the packets' options is that of mode nftables.
DataplaneMode Mode(nftables::Options v4, nftables::Options v6, nftables::OpenKernel open_kernel,
                   std::string cgroup, std::string pin_directory, OutsideOptions outside, Rooms rooms = {});

// The table of packets in this mode.
std::string TableName(const std::string& nftables_table);

}  // namespace keelson::proxy::ebpf
