#include "controlplane/scheduler/devices/allocator.h"

#include <fmt/format.h>

#include <algorithm>

#include "controlplane/scheduler/devices/capacity.h"
#include "controlplane/scheduler/devices/constraints.h"
#include "controlplane/scheduler/devices/taints.h"
#include "lib/api/meta.h"

namespace keelson::scheduler {

namespace {

constexpr uint64_t kStepsBetweenLooks = 64;  // at the clock

// A device of the node, and what the search has taken of it.
struct Candidate {
  const Pool* pool;
  uint32_t index;  // in pool->devices()
  size_t pool_index;
  const DeviceUse* use;                                // null: the device is free
  std::vector<std::pair<size_t, bool>> taken_by = {};  // claims, and whether with admin access
  int shares = 0;
  Capacity consumed = {};  // by users and by the search; of devices that allow multiple allocations

  const PoolDevice& device() const { return pool->devices()[index]; }
  const resourcev1::Device& object() const { return *device().device; }
  bool shareable() const { return object().allow_multiple_allocations(); }
};

enum class Refusal { kNone, kInUse, kSelectors, kTaints, kCapacity, kCounters };

class Search {
 public:
  Search(const NodeFacts& node, const std::vector<ClaimPlan>& claims, const std::vector<const Pool*>& pools,
         const DeviceUses& uses, const SearchLimits& limits)
      : claims_(claims), pools_(pools), limits_(limits), out_(claims.size()) {
    const k8s::NodeView view = node.view();
    uses_.reserve(pools.size());
    for (size_t i = 0; i < pools.size(); ++i) {
      const Pool& pool = *pools[i];
      uses_.push_back(uses.Of(pool.id()));
      for (uint32_t d = 0; d < pool.devices().size(); ++d) {
        if (pool.node().empty() && !pool.devices()[d].target.Matches(view)) continue;
        has_devices_of_unusable_pool_ = has_devices_of_unusable_pool_ || !pool.usable();
        if (!pool.usable()) continue;
        Candidate& candidate = candidates_.emplace_back(Candidate{&pool, d, i, UseOf(i, d)});
        if (candidate.use && candidate.shareable()) candidate.consumed = candidate.use->consumed;
      }
    }
    counters_.resize(pools.size());
    for (size_t c = 0; c < claims.size(); ++c) {
      out_[c].alternatives.resize(claims[c].requests.size());
      std::vector<ConstraintState>& constraints = constraints_.emplace_back();
      for (const ConstraintPlan& plan : claims[c].constraints) constraints.emplace_back(plan);
    }
  }

  Result<std::optional<Allocation>> Run() {
    const bool found = Claim(0);
    if (error_) return *error_;
    if (!found) return std::optional<Allocation>();
    return std::optional<Allocation>(std::move(out_));
  }

  std::string Explain() {
    std::string text;
    for (const ClaimPlan& claim : claims_) {
      for (const RequestGroup& group : claim.requests) {
        for (const RequestPlan& request : group.alternatives) {
          text += text.empty() ? "" : "; ";
          text += fmt::format("claim {}, request {}: {}", claim.claim->metadata().name(), request.name,
                              Explain(request));
        }
      }
    }
    if (has_devices_of_unusable_pool_) text += "; a resource pool of the node is incomplete or invalid";
    return text;
  }

 private:
  const DeviceUse* UseOf(size_t pool, uint32_t device) const {
    if (!uses_[pool]) return nullptr;
    const auto it = uses_[pool]->find(pools_[pool]->devices()[device].device->name());
    return it == uses_[pool]->end() ? nullptr : &it->second;
  }

  bool Stopped() {
    if (error_) return true;
    if (limits_.deadline != SteadyTime::max() && steps_++ % kStepsBetweenLooks == 0 &&
        limits_.clock->SteadyNow() >= limits_.deadline) {
      error_ = Error(Code::kTimeout, "timed out trying to allocate devices");
    }
    return error_.has_value();
  }

  bool Claim(size_t claim) { return claim == claims_.size() || Group(claim, 0); }

  bool Group(size_t claim, size_t number) {
    if (number == claims_[claim].requests.size()) return Claim(claim + 1);
    const RequestGroup& group = claims_[claim].requests[number];
    for (size_t i = 0; i < group.alternatives.size() && !error_; ++i) {
      out_[claim].alternatives[number] = i;
      const Place place{claim, number, &group, &group.alternatives[i]};
      if (place.request->all ? All(place) : Count(place, 0, 0)) return true;
    }
    return false;
  }

  struct Place {
    size_t claim, number;
    const RequestGroup* group;
    const RequestPlan* request;
  };

  bool Fits(const Place& place, int64_t more) const {
    return static_cast<int64_t>(out_[place.claim].devices.size()) + more <= kAllocationResultsMaxSize;
  }

  // The devices from number `taken` on, each at or behind candidate `from`.
  bool Count(const Place& place, int64_t taken, size_t from) {
    if (taken == place.request->count) return Group(place.claim, place.number + 1);
    if (!Fits(place, place.request->count - taken)) return false;
    for (size_t i = from; i < candidates_.size(); ++i) {
      if (Stopped()) return false;
      if (!Take(place, candidates_[i])) continue;
      if (Count(place, taken + 1, candidates_[i].shareable() ? i : i + 1)) return true;
      GiveBack(place, candidates_[i]);
    }
    return false;
  }

  // The order of the devices does not matter: if one cannot be taken, there is no solution.
  bool All(const Place& place) {
    if (has_devices_of_unusable_pool_) return false;  // they may match
    std::vector<Candidate*> wanted;
    for (Candidate& candidate : candidates_) {
      if (Stopped()) return false;
      if (Selected(*place.request, candidate) && HasCapacity(*place.request, candidate)) {
        wanted.push_back(&candidate);
      }
    }
    if (error_ || wanted.empty() || !Fits(place, static_cast<int64_t>(wanted.size()))) return false;
    size_t taken = 0;
    while (taken < wanted.size() && Take(place, *wanted[taken])) ++taken;
    if (taken == wanted.size() && Group(place.claim, place.number + 1)) return true;
    while (taken > 0) GiveBack(place, *wanted[--taken]);
    return false;
  }

  // A claim gets a device once. Admin access comes beside the users of other claims, and does not count as one.
  static bool InUse(size_t claim, const RequestPlan& request, const Candidate& candidate) {
    const bool used =
        candidate.use && (candidate.use->claims > 0 || (!candidate.shareable() && candidate.use->shares > 0));
    if (!request.admin_access && used) return true;
    return std::any_of(candidate.taken_by.begin(), candidate.taken_by.end(), [&](const auto& by) {
      return by.first == claim || (!request.admin_access && !by.second);
    });
  }

  bool Selected(const RequestPlan& request, const Candidate& candidate) {
    for (size_t i = 0; i < request.selectors.size(); ++i) {
      const Result<bool> matches = candidate.pool->Matches(*request.selectors[i], candidate.index);
      if (!matches) {
        const bool own = i >= request.class_selectors;
        error_ = Error(
            Code::kInvalid,
            fmt::format("{}: selector #{}: CEL runtime error: {}",
                        own ? "claim " + request.claim : "class " + request.device_class->metadata().name(),
                        own ? i - request.class_selectors : i, matches.error().message()));
        return false;
      }
      if (!*matches) return false;
    }
    return true;
  }

  static bool HasCapacity(const RequestPlan& request, const Candidate& candidate) {
    if (!request.capacity && !candidate.shareable()) return true;
    return TakeCapacity(candidate.object(), request.capacity, candidate.consumed).has_value();
  }

  // A device takes counters once, however many share it. Admin access takes none.
  static bool TakesCounters(const RequestPlan& request, const Candidate& candidate) {
    return !request.admin_access && !candidate.device().counters.empty() && candidate.shares == 0 &&
           !(candidate.use && candidate.use->shares > 0);
  }
  std::vector<api::Amount>& CountersOf(const Candidate& candidate) {
    std::vector<api::Amount>& left = counters_[candidate.pool_index];
    if (left.empty()) left = candidate.pool->AvailableCounters(uses_[candidate.pool_index]);
    return left;
  }
  bool HasCounters(const RequestPlan& request, const Candidate& candidate) {
    if (!TakesCounters(request, candidate)) return true;
    const std::vector<api::Amount>& left = CountersOf(candidate);
    const auto& needs = candidate.device().counters;
    return std::all_of(needs.begin(), needs.end(),
                       [&](const auto& need) { return need.second <= left[need.first]; });
  }

  Refusal Check(size_t claim, const RequestPlan& request, const Candidate& candidate) {
    if (InUse(claim, request, candidate)) return Refusal::kInUse;
    if (!Selected(request, candidate)) return Refusal::kSelectors;
    if (!HasCapacity(request, candidate)) return Refusal::kCapacity;
    if (!HasCounters(request, candidate)) return Refusal::kCounters;
    if (FindUntolerated(candidate.object(), *request.tolerations)) return Refusal::kTaints;
    return Refusal::kNone;
  }

  bool Take(const Place& place, Candidate& candidate) {
    const RequestPlan& request = *place.request;
    if (Check(place.claim, request, candidate) != Refusal::kNone) return false;
    std::vector<ConstraintState>& constraints = constraints_[place.claim];
    for (size_t i = 0; i < constraints.size(); ++i) {
      if (constraints[i].Add(*place.group, request, candidate.pool->driver(), candidate.object())) continue;
      while (i > 0) {
        constraints[--i].Remove(*place.group, request, candidate.pool->driver(), candidate.object());
      }
      return false;
    }
    PickedDevice picked{candidate.pool, candidate.index, &request, candidate.shareable(), {}};
    if (TakesCounters(request, candidate)) {
      for (const auto& [index, amount] : candidate.device().counters) CountersOf(candidate)[index] -= amount;
    }
    if (picked.share) {
      picked.consumed = *TakeCapacity(candidate.object(), request.capacity, candidate.consumed);
      for (const auto& [name, amount] : picked.consumed) candidate.consumed[name] += amount;
      if (!request.admin_access) ++candidate.shares;
    } else {
      candidate.taken_by.emplace_back(place.claim, request.admin_access);
    }
    out_[place.claim].devices.push_back(std::move(picked));
    return true;
  }

  // Undoes the last Take() of the claim, which was of this candidate.
  void GiveBack(const Place& place, Candidate& candidate) {
    PickedDevice& picked = out_[place.claim].devices.back();
    if (picked.share) {
      if (!place.request->admin_access) --candidate.shares;
      for (const auto& [name, amount] : picked.consumed) candidate.consumed[name] -= amount;
    } else {
      candidate.taken_by.pop_back();
    }
    if (TakesCounters(*place.request, candidate)) {
      for (const auto& [index, amount] : candidate.device().counters) CountersOf(candidate)[index] += amount;
    }
    for (ConstraintState& constraint : constraints_[place.claim]) {
      constraint.Remove(*place.group, *place.request, candidate.pool->driver(), candidate.object());
    }
    out_[place.claim].devices.pop_back();
  }

  std::string Explain(const RequestPlan& request) {
    std::map<Refusal, int> counts;
    for (const Candidate& candidate : candidates_) ++counts[Check(claims_.size(), request, candidate)];
    std::string text = fmt::format("{} of {} devices fit", counts[Refusal::kNone], candidates_.size());
    const std::pair<Refusal, const char*> words[] = {
        {Refusal::kInUse, "in use"},
        {Refusal::kSelectors, "not selected"},
        {Refusal::kCapacity, "without enough capacity"},
        {Refusal::kCounters, "without enough counters"},
        {Refusal::kTaints, "tainted"},
    };
    for (const auto& [refusal, word] : words) {
      if (counts[refusal] > 0) text += fmt::format(", {} {}", counts[refusal], word);
    }
    if (error_) text += ", " + error_->message();
    error_.reset();
    return text;
  }

  const std::vector<ClaimPlan>& claims_;
  const std::vector<const Pool*>& pools_;
  const SearchLimits& limits_;
  std::vector<const PoolUse*> uses_;  // by pool
  bool has_devices_of_unusable_pool_ = false;
  std::vector<Candidate> candidates_;
  std::vector<std::vector<api::Amount>> counters_;         // left, by pool; empty: not computed yet
  std::vector<std::vector<ConstraintState>> constraints_;  // by claim
  Allocation out_;
  uint64_t steps_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<std::optional<Allocation>> Allocate(const NodeFacts& node, const std::vector<ClaimPlan>& claims,
                                           const std::vector<const Pool*>& pools, const DeviceUses& uses,
                                           const SearchLimits& limits) {
  return Search(node, claims, pools, uses, limits).Run();
}

std::string Explain(const NodeFacts& node, const std::vector<ClaimPlan>& claims,
                    const std::vector<const Pool*>& pools, const DeviceUses& uses) {
  return Search(node, claims, pools, uses, SearchLimits()).Explain();
}

}  // namespace keelson::scheduler
