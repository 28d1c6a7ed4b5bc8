#include "controlplane/scheduler/devices/claim_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/meta.h"

namespace keelson::scheduler {

namespace {

using Selectors = google::protobuf::RepeatedPtrField<resourcev1::DeviceSelector>;

Error Bad(std::string message) { return Error(Code::kInvalid, std::move(message)); }

class Planner {
 public:
  Planner(const resourcev1::ResourceClaim& claim, const FindDeviceClass& find_class, SelectorCache& selectors)
      : key_(api::KeyOf(claim)), find_class_(find_class), selectors_(selectors) {}

  Result<RequestGroup> Plan(const resourcev1::DeviceRequest& request) {
    RequestGroup group;
    group.name = request.name();
    group.first_available = request.first_available_size() > 0;
    if (request.has_exactly()) {
      KEELSON_ASSIGN_OR_RETURN(RequestPlan plan, Plan(request.name(), request.exactly()));
      plan.admin_access = request.exactly().admin_access();
      group.alternatives.push_back(std::move(plan));
      return group;
    }
    if (!group.first_available) {
      return Bad(fmt::format("resource claim {}, request {}: unknown request type", key_, request.name()));
    }
    for (const resourcev1::DeviceSubRequest& alternative : request.first_available()) {
      KEELSON_ASSIGN_OR_RETURN(RequestPlan plan,
                               Plan(fmt::format("{}/{}", request.name(), alternative.name()), alternative));
      group.alternatives.push_back(std::move(plan));
    }
    return group;
  }

 private:
  template <typename R>
  Result<RequestPlan> Plan(std::string name, const R& request) {
    RequestPlan out;
    out.name = std::move(name);
    out.claim = key_;
    if (request.device_class_name().empty()) {
      return Bad(fmt::format("request {}: unsupported request type", out.name));
    }
    out.device_class = find_class_(request.device_class_name());
    if (!out.device_class) {
      return Bad(
          fmt::format("request {}: device class {} does not exist", out.name, request.device_class_name()));
    }
    KEELSON_RETURN_IF_ERROR(Compile(fmt::format("class {}", request.device_class_name()), out.name,
                                    out.device_class->spec().selectors(), out.selectors));
    out.class_selectors = out.selectors.size();
    KEELSON_RETURN_IF_ERROR(
        Compile(fmt::format("claim {}", key_), out.name, request.selectors(), out.selectors));
    if (request.allocation_mode() == "All") {
      out.all = true;
    } else if (request.allocation_mode() != "ExactCount" && !request.allocation_mode().empty()) {
      return Bad(fmt::format("claim {}, request {}: unsupported count mode {}", key_, out.name,
                             request.allocation_mode()));
    }
    out.count = std::max<int64_t>(request.count(), 1);
    out.tolerations = &request.tolerations();
    if (request.has_capacity() && !request.capacity().requests().empty()) out.capacity = &request.capacity();
    return out;
  }

  Result<> Compile(const std::string& owner, const std::string& request, const Selectors& from,
                   std::vector<SelectorPtr>& into) {
    for (int i = 0; i < from.size(); ++i) {
      if (!from[i].has_cel()) {
        return Bad(fmt::format(
            "claim {}, request {}, selector #{}: CEL expression empty (unsupported selector type?)", key_,
            request, i));
      }
      SelectorPtr selector = selectors_.Get(from[i].cel().expression());
      if (!selector->program) {
        return Bad(fmt::format("{}: selector #{}: CEL compile error: {}", owner, i, selector->error));
      }
      into.push_back(std::move(selector));
    }
    return {};
  }

  const std::string key_;
  const FindDeviceClass& find_class_;
  SelectorCache& selectors_;
};

// The fewest devices that the claim can be given.
int64_t LeastDevices(const ClaimPlan& plan) {
  int64_t least = 0;
  for (const RequestGroup& group : plan.requests) {
    int64_t fewest = kAllocationResultsMaxSize + 1;
    for (const RequestPlan& request : group.alternatives) {
      fewest = std::min(fewest, request.all ? 1 : request.count);
    }
    least += fewest;
  }
  return least;
}

bool Has(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

bool ConstraintPlan::AppliesTo(const RequestGroup& group, const RequestPlan& request) const {
  return requests.empty() || Has(requests, group.name) || Has(requests, request.name);
}

Result<ClaimPlan> PlanClaim(std::shared_ptr<const resourcev1::ResourceClaim> claim,
                            const FindDeviceClass& find_class, SelectorCache& selectors) {
  ClaimPlan plan;
  plan.claim = std::move(claim);
  const resourcev1::DeviceClaim& devices = plan.claim->spec().devices();
  Planner planner(*plan.claim, find_class, selectors);
  for (const resourcev1::DeviceRequest& request : devices.requests()) {
    KEELSON_ASSIGN_OR_RETURN(RequestGroup group, planner.Plan(request));
    plan.requests.push_back(std::move(group));
  }
  for (int i = 0; i < devices.constraints_size(); ++i) {
    const resourcev1::DeviceConstraint& constraint = devices.constraints(i);
    if (!constraint.has_match_attribute() && !constraint.has_distinct_attribute()) {
      return Bad(fmt::format("claim {}, constraint #{}: empty constraint (unsupported constraint type?)",
                             api::KeyOf(*plan.claim), i));
    }
    plan.constraints.push_back(
        {constraint.has_match_attribute() ? constraint.match_attribute() : constraint.distinct_attribute(),
         !constraint.has_match_attribute(),
         {constraint.requests().begin(), constraint.requests().end()}});
  }
  if (const int64_t least = LeastDevices(plan); least > kAllocationResultsMaxSize) {
    return Bad(fmt::format("claim {}: number of requested devices {} exceeds the claim limit of {}",
                           api::KeyOf(*plan.claim), least, kAllocationResultsMaxSize));
  }
  return plan;
}

}  // namespace keelson::scheduler
