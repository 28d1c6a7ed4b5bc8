// Keeps one address family's table in the kernel equal to a Plan.
#pragma once

#include <memory>

#include "lib/nft/kernel.h"
#include "proxy/nftables/plan.h"

namespace keelson::proxy::nftables {

// The kernel does not take what a Service asks for; the others are in place.
struct Refusal {
  std::string service;
  Error error;
};

struct SyncStats {
  size_t operations = 0;  // changes sent to the kernel; 0: nothing to do
  bool full = false;      // the kernel was read and compared
  std::vector<Refusal> refusals;
};

class Dataplane {
 public:
  Dataplane(std::unique_ptr<nft::Kernel> kernel, Options options);

  Plan& plan() { return plan_; }
  // Brings the kernel up to the plan. The first time, and after a failure, what is there is read and only the
  // difference is written; later the plan's changes are written as they are. What is too much at once is
  // written in parts. Services that the kernel refuses are found by halving and left out, until they change
  // or RetryRefused().
  Result<SyncStats> Sync();
  // Looks whether somebody else has changed any table, and repairs this one.
  Result<SyncStats> Verify();
  // Somebody else has changed this table: the next Sync() looks.
  void Distrust() { in_step_ = false; }
  void RetryRefused();
  uint32_t port() const { return kernel_->port(); }  // by which nft::Monitor knows this one's changes
  // Writes the table without any Service if there is none yet: fails where the kernel lacks the family.
  Result<SyncStats> Probe();
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
  uint32_t generation_ = 0;  // of the kernel's ruleset when it was last known to be ours; 0: unknown
};

}  // namespace keelson::proxy::nftables
