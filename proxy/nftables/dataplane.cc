#include "proxy/nftables/dataplane.h"

#include <malloc.h>

#include "lib/nft/diff.h"

namespace keelson::proxy::nftables {

Dataplane::Dataplane(std::unique_ptr<nft::Kernel> kernel, Options options)
    : kernel_(std::move(kernel)), plan_(std::move(options)) {}

Result<SyncStats> Dataplane::Sync() {
  if (!in_step_) return FullSync();
  nft::Transaction changes = plan_.TakeChanges();
  if (changes.empty()) return SyncStats{};
  Result<> applied = kernel_->Apply(changes);
  if (!applied) {
    in_step_ = false;  // the plan has handed its changes out: compare from scratch next time
    return applied.error();
  }
  ASSIGN_OR_RETURN(uint32_t now, kernel_->Generation());
  generation_ = generation_ != 0 && now == generation_ + 1 ? now : 0;
  return SyncStats{.operations = changes.ops().size()};
}

Result<SyncStats> Dataplane::Verify() {
  ASSIGN_OR_RETURN(uint32_t now, kernel_->Generation());
  if (in_step_ && now == generation_) return SyncStats{};
  return FullSync();
}

Result<SyncStats> Dataplane::FullSync() {
  in_step_ = false;
  (void)plan_.TakeChanges();  // the comparison covers them
  ASSIGN_OR_RETURN(uint32_t before, kernel_->Generation());
  ASSIGN_OR_RETURN(std::optional<nft::Ruleset> found, kernel_->Read(plan_.options().Table()));
  nft::Transaction changes = nft::Diff(found, plan_.Wanted());
  RETURN_IF_ERROR(kernel_->Apply(changes));
  ASSIGN_OR_RETURN(uint32_t now, kernel_->Generation());
  generation_ = now == before + (changes.empty() ? 0 : 1) ? now : 0;
  in_step_ = true;
  ::malloc_trim(0);  // what was compared is large and seldom needed
  return SyncStats{.operations = changes.ops().size(), .full = true};
}

Result<SyncStats> Dataplane::Probe() {
  ASSIGN_OR_RETURN(std::optional<nft::Ruleset> found, kernel_->Read(plan_.options().Table()));
  if (found) return SyncStats{};
  nft::Transaction changes = nft::Diff(found, FixedRuleset(plan_.options()));
  RETURN_IF_ERROR(kernel_->Apply(changes));
  return SyncStats{.operations = changes.ops().size(), .full = true};
}

Result<> Dataplane::Remove(nft::Kernel& kernel, const nft::Table& table) {
  nft::Transaction t(table);
  t.AddTable();  // so that deleting finds one
  t.DeleteTable();
  return kernel.Apply(t);
}

}  // namespace keelson::proxy::nftables
