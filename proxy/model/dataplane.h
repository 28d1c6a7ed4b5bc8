// The interface of everything that programs Services into this node's kernel: one object for each address
// family.
//
// The proxier tells it what Services mean (model/), and it keeps the kernel equal to that. The contract:
//
// - Planning is apart from effect. Set...() change what is wanted, do no I/O and cannot fail; Sync() and
//   Verify() write. What a change costs follows the change, not the cluster.
// - Whatever must outlive the process lies in the kernel. The first Sync() finds what an earlier process
//   left, of this kind, and writes only the difference; a kill at any point leaves nothing that this does not
//   put right.
// - One Service that the kernel refuses keeps no other one out: it is left out and named.
// - Open connections live on: through changes of other endpoints, a restart, and a switch to another kind.
//   To switch, the new dataplane is first filled by Sync() beside the old one, which then Retire()s. What the
//   old one has translated goes on by conntrack, or by what the old one leaves in the kernel until its last
//   connection has ended. A kind that does not translate by nftables therefore keeps a chain of type nat in
//   its family all the same: without any the kernel stops to translate what it has tracked.
// - nodectl tells what becomes of a packet from the kernel's state alone (lib/dataplane describes that state).
//
// Calls come from one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/nft/model.h"
#include "proxy/model/service_port.h"

namespace keelson::proxy {

// A Service that the kernel refuses, though it takes the others.
struct Refusal {
  std::string service;
  Error error;
};

struct SyncStats {
  size_t operations = 0;  // changes sent to the kernel; 0: nothing to do
  bool full = false;      // the kernel was read and compared
  std::vector<Refusal> refusals;
  // Something is to be done later though nothing changes (an endpoint drains): Sync() after this time.
  std::optional<std::chrono::milliseconds> again;
};

// An nftables table, and the netlink port by which nft::Monitor knows its owner's changes.
struct OwnTable {
  nft::Table table;
  uint32_t author = 0;
};

class Dataplane {
 public:
  virtual ~Dataplane() = default;
  virtual bool v4() const = 0;

  // Changes what is wanted. `key` is namespace/name. `ports` are of this family; none: the Service has gone.
  // `ips` and `cidrs` are of both families.
  virtual void SetService(const std::string& key, const std::vector<ResolvedPort>& ports) = 0;
  virtual void SetNodeIps(const std::vector<IpAddress>& ips) = 0;  // where NodePorts answer
  virtual void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) = 0;
  // All of this machine's addresses, but for those that a dataplane has given it; of both families.
  virtual void SetOwnIps(const std::vector<IpAddress>&) {}

  // Fails when the kernel lacks the address family. Called before the first Sync().
  virtual Result<> Probe() = 0;
  // Writes what is wanted into the kernel.
  virtual Result<SyncStats> Sync() = 0;
  // Sync(), and repairs what other programs have changed.
  virtual Result<SyncStats> Verify() = 0;
  // Other programs have changed something: the next Sync() repairs it.
  virtual void Distrust() = 0;
  // Once a sync period: the next Sync() tries again what was refused, and looks for changes by others that no
  // notification tells of.
  virtual void OnPeriod() = 0;
  virtual size_t Refused() const = 0;  // Services left out now
  // Tables whose changes by other programs the caller reports by Distrust().
  virtual std::vector<OwnTable> Tables() const = 0;

  // Call when another dataplane is in place. Serves no new connections, and removes from the kernel what no
  // open connection needs. Returns when to call again for the rest; nullopt: nothing is left. No other call
  // follows.
  virtual Result<std::optional<std::chrono::milliseconds>> Retire() = 0;
};

// One kind of dataplane, configured.
struct DataplaneMode {
  std::string name;  // as KubeProxyConfiguration has it
  // An error that names what this kernel lacks for it. Called before `make`. May be empty.
  std::function<Result<>()> check;
  // Whether the kernel has anything of this mode, which Retire() then removes while another mode runs. Empty:
  // perhaps.
  std::function<Result<bool>()> left;
  // Makes the dataplane of one family. `pod_cidrs`: the Node's, of both families, with detect-local-mode
  // NodeCIDR.
  std::function<Result<std::unique_ptr<Dataplane>>(bool v4,
                                                   const std::optional<std::vector<IpPrefix>>& pod_cidrs)>
      make;
};

}  // namespace keelson::proxy
