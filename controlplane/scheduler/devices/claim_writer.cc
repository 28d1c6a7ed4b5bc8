#include "controlplane/scheduler/devices/claim_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/k8s/pods/resource_claims.h"

namespace keelson::scheduler {

namespace {

constexpr int kAttempts = 5;

bool IsReservedFor(const std::string& uid, const resourcev1::ResourceClaim& claim) {
  const auto& users = claim.status().reserved_for();
  return std::any_of(users.begin(), users.end(), [&](const auto& user) { return user.uid() == uid; });
}

// One attempt. kConflict: to be repeated with the claim as it is by then.
Result<resourcev1::ResourceClaim> TryToBind(const client::RestClient& api, resourcev1::ResourceClaim claim,
                                            const resourcev1::AllocationResult* allocation,
                                            const PodInfo& pod, WallTime now) {
  if (allocation) {
    auto& finalizers = *claim.mutable_metadata()->mutable_finalizers();
    if (std::find(finalizers.begin(), finalizers.end(), k8s::kResourceClaimFinalizer) == finalizers.end()) {
      *finalizers.Add() = k8s::kResourceClaimFinalizer;
      Result<resourcev1::ResourceClaim> updated = api.Update(claim);
      if (!updated) {
        return updated.error().Wrap(fmt::format("add finalizer to claim {}", api::KeyOf(claim)));
      }
      claim = std::move(*updated);
    }
    *claim.mutable_status()->mutable_allocation() = *allocation;
  }
  resourcev1::ResourceClaimConsumerReference& user = *claim.mutable_status()->add_reserved_for();
  user.set_resource("pods");
  user.set_name(pod.name);
  user.set_uid(pod.uid);
  if (!claim.status().allocation().has_allocation_timestamp()) {
    *claim.mutable_status()->mutable_allocation()->mutable_allocation_timestamp() = api::ToTime(now);
  }
  Result<resourcev1::ResourceClaim> updated = api.UpdateStatus(claim);
  if (updated) return updated;
  return updated.error().Wrap(fmt::format("{} to claim {}",
                                          allocation ? "add allocation and reservation" : "add reservation",
                                          api::KeyOf(claim)));
}

const resourcev1::AllocatedDeviceStatus* FindStatus(const resourcev1::ResourceClaim& claim,
                                                    const resourcev1::DeviceRequestAllocationResult& result) {
  for (const resourcev1::AllocatedDeviceStatus& status : claim.status().devices()) {
    if (status.device() == result.device() && status.driver() == result.driver() &&
        status.pool() == result.pool()) {
      return &status;
    }
  }
  return nullptr;
}

const metav1::Condition* FindTrue(const resourcev1::AllocatedDeviceStatus& status, const std::string& type) {
  for (const metav1::Condition& condition : status.conditions()) {
    if (condition.type() == type && condition.status() == "True") return &condition;
  }
  return nullptr;
}

}  // namespace

Result<resourcev1::ResourceClaim> BindClaim(const client::RestClient& api,
                                            const resourcev1::ResourceClaim& claim,
                                            const resourcev1::AllocationResult* allocation,
                                            const PodInfo& pod, WallTime now) {
  resourcev1::ResourceClaim latest = claim;
  for (int attempt = 1;; ++attempt) {
    if (latest.metadata().has_deletion_timestamp() || latest.metadata().uid() != claim.metadata().uid()) {
      return Error(Code::kInternal, fmt::format("claim {} got deleted in the meantime", api::KeyOf(claim)));
    }
    if (allocation && latest.status().has_allocation()) {
      return Error(Code::kInternal,
                   fmt::format("claim {} got allocated elsewhere in the meantime", api::KeyOf(claim)));
    }
    if (!allocation && !latest.status().has_allocation()) {
      return Error(Code::kInternal,
                   fmt::format("claim {} got deallocated elsewhere in the meantime", api::KeyOf(claim)));
    }
    if (IsReservedFor(pod.uid, latest)) return latest;
    Result<resourcev1::ResourceClaim> bound = TryToBind(api, latest, allocation, pod, now);
    if (bound || !bound.error().Is(Code::kConflict) || attempt == kAttempts) return bound;
    Result<resourcev1::ResourceClaim> read =
        api.Get<resourcev1::ResourceClaim>(claim.metadata().namespace_(), claim.metadata().name());
    if (!read) {
      return read.error().Wrap(fmt::format("get updated claim {} after conflict", api::KeyOf(claim)));
    }
    latest = std::move(*read);
  }
}

Result<> ReleaseClaim(const client::RestClient& api, const resourcev1::ResourceClaim& claim,
                      const std::string& pod_uid) {
  const std::string body = fmt::format(
      R"({{"metadata":{{"uid":"{}"}},"status":{{"reservedFor":[{{"$patch":"delete","uid":"{}"}}]}}}})",
      claim.metadata().uid(), pod_uid);
  const auto patched =
      api.Patch<resourcev1::ResourceClaim>(claim.metadata().namespace_(), claim.metadata().name(),
                                           client::PatchType::kStrategicMerge, body, "status");
  if (!patched && !patched.error().Is(Code::kNotFound)) return patched.error();
  return {};
}

Result<bool> IsReadyForBinding(const resourcev1::ResourceClaim& claim) {
  bool ready = true;
  for (const auto& result : claim.status().allocation().devices().results()) {
    if (result.binding_conditions().empty()) continue;
    const resourcev1::AllocatedDeviceStatus* status = FindStatus(claim, result);
    if (!status) {
      ready = false;
      continue;
    }
    for (const std::string& type : result.binding_failure_conditions()) {
      if (const metav1::Condition* failed = FindTrue(*status, type)) {
        return Error(Code::kInternal,
                     fmt::format("claim {} binding failed: reason={}, message=\"{}\"",
                                 claim.metadata().name(), failed->reason(), failed->message()));
      }
    }
    ready = ready && std::all_of(result.binding_conditions().begin(), result.binding_conditions().end(),
                                 [&](const std::string& type) { return FindTrue(*status, type) != nullptr; });
  }
  return ready;
}

bool IsBindingTimedOut(const resourcev1::ResourceClaim& claim, std::chrono::milliseconds timeout,
                       WallTime now) {
  const resourcev1::AllocationResult& allocation = claim.status().allocation();
  return allocation.has_allocation_timestamp() &&
         api::FromTime(allocation.allocation_timestamp()) + timeout < now;
}

}  // namespace keelson::scheduler
