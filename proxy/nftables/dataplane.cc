#include "proxy/nftables/dataplane.h"

#include <malloc.h>

#include <cerrno>

#include "lib/nft/diff.h"

namespace keelson::proxy::nftables {

namespace {

// Failures that say nothing about what was asked for: later it may be taken as it is.
bool IsPassing(const Error& error) {
  return error.errnum() == EINTR || error.errnum() == EAGAIN || error.errnum() == EBUSY;
}

// What is too much at once may be taken in parts.
bool IsTooMuch(const Error& error) {
  return error.errnum() == ENOBUFS || error.errnum() == ENOMEM || error.errnum() == EMSGSIZE;
}

}  // namespace

Dataplane::Dataplane(std::unique_ptr<nft::Kernel> kernel, Options options)
    : kernel_(std::move(kernel)), plan_(std::move(options)) {
  plan_.AwaitStart();
}

Result<SyncStats> Dataplane::Sync() {
  Result<SyncStats> done = in_step_ ? Incremental() : FullSync();
  // What did not fit to what was believed to be there may fit to what is.
  if (!done) done = FullSync();
  if (!done && !IsPassing(done.error())) done = Isolate();
  if (done) plan_.Settle();
  return done;
}

Result<SyncStats> Dataplane::Incremental() {
  nft::Transaction changes = plan_.TakeChanges();
  if (changes.empty()) return SyncStats{};
  in_step_ = false;  // unless it succeeds: the plan has handed its changes out
  KEELSON_RETURN_IF_ERROR(kernel_->Apply(changes));
  in_step_ = true;
  KEELSON_ASSIGN_OR_RETURN(uint32_t now, kernel_->Generation());
  generation_ = generation_ != 0 && now == generation_ + 1 ? now : 0;
  return SyncStats{.operations = changes.ops().size()};
}

Result<SyncStats> Dataplane::Verify() {
  KEELSON_ASSIGN_OR_RETURN(uint32_t now, kernel_->Generation());
  if (now != generation_) in_step_ = false;
  return Sync();
}

void Dataplane::OnPeriod() {
  for (const std::string& key : plan_.Held()) plan_.Release(key);
}

Result<SyncStats> Dataplane::Isolate() {
  const std::vector<std::string> suspects = plan_.Unsettled();
  for (const std::string& key : suspects) plan_.Hold(key);
  Result<SyncStats> total = FullSync();
  if (total) {
    Result<> admitted = Admit(suspects.data(), suspects.data() + suspects.size(), *total);
    if (!admitted) total = admitted.error();
  }
  if (!total) {  // it is not the Services: all are tried again
    for (const std::string& key : suspects) plan_.Release(key);
  }
  return total;
}

// Releases [first, last), but for those that the kernel refuses even alone.
Result<> Dataplane::Admit(const std::string* first, const std::string* last, SyncStats& total) {
  if (first == last) return {};
  for (auto key = first; key != last; ++key) plan_.Release(*key);
  Result<SyncStats> done = Incremental();
  if (done) {
    total.operations += done->operations;
    return {};
  }
  if (IsPassing(done.error())) return done.error();
  for (auto key = first; key != last; ++key) plan_.Hold(*key);
  KEELSON_RETURN_IF_ERROR(FullSync());
  if (last - first == 1) {
    if (IsTooMuch(done.error())) return done.error();  // it is the machine, not the Service
    total.refusals.push_back({*first, done.error()});
    return {};
  }
  auto middle = first + (last - first) / 2;
  KEELSON_RETURN_IF_ERROR(Admit(first, middle, total));
  return Admit(middle, last, total);
}

Result<SyncStats> Dataplane::FullSync() {
  Result<SyncStats> done = Compare();
  ::malloc_trim(0);  // what was compared is large and seldom needed
  return done;
}

Result<SyncStats> Dataplane::Compare() {
  in_step_ = false;
  plan_.StartOver();
  KEELSON_ASSIGN_OR_RETURN(uint32_t before, kernel_->Generation());
  KEELSON_ASSIGN_OR_RETURN(std::optional<nft::Ruleset> found, kernel_->Read(plan_.options().Table()));
  nft::Transaction changes = nft::Diff(found, plan_.Wanted());
  KEELSON_RETURN_IF_ERROR(kernel_->Apply(changes));
  KEELSON_ASSIGN_OR_RETURN(uint32_t now, kernel_->Generation());
  generation_ = now == before + (changes.empty() ? 0 : 1) ? now : 0;
  in_step_ = true;
  return SyncStats{.operations = changes.ops().size(), .full = true};
}

Result<> Dataplane::Probe() {
  KEELSON_ASSIGN_OR_RETURN(std::optional<nft::Ruleset> found, kernel_->Read(plan_.options().Table()));
  if (found) return {};
  return kernel_->Apply(nft::Diff(found, FixedRuleset(plan_.options())));
}

Result<std::optional<std::chrono::milliseconds>> Dataplane::Retire() {
  Result<bool> there = kernel_->HasChain(plan_.options().Table(), "services");
  if (!there || *there) KEELSON_RETURN_IF_ERROR(Remove(*kernel_, plan_.options().Table()));
  return std::optional<std::chrono::milliseconds>();
}

Result<> Dataplane::Remove(nft::Kernel& kernel, const nft::Table& table) {
  nft::Transaction t(table);
  t.AddTable();  // so that deleting finds one
  t.DeleteTable();
  return kernel.Apply(t);
}

Options WithPods(Options options, const std::optional<std::vector<IpPrefix>>& pod_cidrs) {
  if (!pod_cidrs) return options;
  options.pod_cidrs.clear();
  for (const IpPrefix& cidr : *pod_cidrs) {
    if (cidr.is_v4() == options.v4) options.pod_cidrs.push_back(cidr);
  }
  return options;
}

DataplaneMode Mode(Options v4, Options v6, OpenKernel open_kernel) {
  auto make = [=](bool is_v4, const std::optional<std::vector<IpPrefix>>& pod_cidrs)
      -> Result<std::unique_ptr<proxy::Dataplane>> {
    Result<std::unique_ptr<nft::Kernel>> kernel = open_kernel();
    if (!kernel) return kernel.error().Wrap("reach the kernel's nftables");
    return std::unique_ptr<proxy::Dataplane>(
        std::make_unique<Dataplane>(std::move(*kernel), WithPods(is_v4 ? v4 : v6, pod_cidrs)));
  };
  auto left = [=]() -> Result<bool> {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, open_kernel());
    KEELSON_ASSIGN_OR_RETURN(bool in_v4, kernel->HasChain(v4.Table(), "services"));
    return in_v4 || kernel->HasChain(v6.Table(), "services").value_or(false);
  };
  return {.name = "nftables", .check = {}, .left = std::move(left), .make = std::move(make)};
}

}  // namespace keelson::proxy::nftables
