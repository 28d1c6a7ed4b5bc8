// What puts Services into the kernel of this node, whichever way: one object for each address family.
//
// The proxier tells it what Services mean (model/); it keeps the kernel equal to that. The contract:
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
// - nodectl tells what becomes of a packet from the kernel's state alone: programs do not include each other.
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

// The kernel does not take what a Service asks for; the others are in place.
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

// An nftables table, and by which port nft::Monitor knows its owner's changes.
struct OwnTable {
  nft::Table table;
  uint32_t author = 0;
};

class Dataplane {
 public:
  virtual ~Dataplane() = default;
  virtual bool v4() const = 0;

  // What is wanted. `ports` are of this family; none: the Service has gone. `ips` and `cidrs` are of both.
  virtual void SetService(const std::string& key, const std::vector<ResolvedPort>& ports) = 0;
  virtual void SetNodeIps(const std::vector<IpAddress>& ips) = 0;  // where NodePorts answer
  virtual void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) = 0;
  // All of this machine's addresses, but for those that a dataplane has given it; of both families.
  virtual void SetOwnIps(const std::vector<IpAddress>&) {}

  // Whether the kernel has this family at all; before the first Sync().
  virtual Result<> Probe() = 0;
  // Brings the kernel up to what is wanted.
  virtual Result<SyncStats> Sync() = 0;
  // Sync(), and looks whether somebody else has changed what is there.
  virtual Result<SyncStats> Verify() = 0;
  // Somebody else has: the next Sync() looks.
  virtual void Distrust() = 0;
  // Once a sync period: the next Sync() tries again what was refused, and looks for changes by others that no
  // notification tells of.
  virtual void OnPeriod() = 0;
  virtual size_t Refused() const = 0;  // Services left out now
  // Whose changes by others are to be told by Distrust().
  virtual std::vector<OwnTable> Tables() const = 0;

  // Another dataplane is in place: takes no more connections, and goes from the kernel as far as no open
  // connection needs it. When to call again, for what is left; nullopt: nothing is. No other call follows.
  virtual Result<std::optional<std::chrono::milliseconds>> Retire() = 0;
};

// One kind of dataplane, configured.
struct DataplaneMode {
  std::string name;  // as KubeProxyConfiguration has it
  // What this kernel lacks for it, and what to do about that; before anything of it is made. May be empty.
  std::function<Result<>()> check;
  // Whether anything of it is in the kernel, which is Retire()d then while another mode runs. Empty: perhaps.
  std::function<Result<bool>()> left;
  // `pod_cidrs`: the Node's, both families, when pods are told by them (detect-local-mode NodeCIDR).
  std::function<Result<std::unique_ptr<Dataplane>>(bool v4,
                                                   const std::optional<std::vector<IpPrefix>>& pod_cidrs)>
      make;
};

}  // namespace keelson::proxy
