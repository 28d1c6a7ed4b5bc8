// Keeps one address family's table in the kernel equal to a Plan.
#pragma once

#include <memory>

#include "lib/nft/kernel.h"
#include "proxy/nftables/plan.h"

namespace keelson::proxy::nftables {

struct SyncStats {
  size_t operations = 0;  // changes sent to the kernel; 0: nothing to do
  bool full = false;      // the kernel was read and compared
};

class Dataplane {
 public:
  Dataplane(std::unique_ptr<nft::Kernel> kernel, Options options);

  Plan& plan() { return plan_; }
  // Brings the kernel up to the plan. The first time, and after a failure, what is there is read and only the
  // difference is written; later the plan's changes are written as they are.
  Result<SyncStats> Sync();
  // Looks whether somebody else has changed the table, and repairs it.
  Result<SyncStats> Verify();
  // Writes the table without any Service if there is none yet: fails where the kernel lacks the family.
  Result<SyncStats> Probe();
  // Removes the table; absent is fine.
  static Result<> Remove(nft::Kernel& kernel, const nft::Table& table);

 private:
  Result<SyncStats> FullSync();
  std::unique_ptr<nft::Kernel> kernel_;
  Plan plan_;
  bool in_step_ = false;
  uint32_t generation_ = 0;  // of the kernel's ruleset when it was last known to be ours; 0: unknown
};

}  // namespace keelson::proxy::nftables
