// What a ResourceClaim asks for, read once a scheduling cycle.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/devices/selectors.h"
#include "lib/base/error.h"

namespace keelson::scheduler {

namespace resourcev1 = api::resource::v1;

// Devices of one class: an exact request, or one of the alternatives of a request.
struct RequestPlan {
  std::string name;   // as results have it: "gpu", or "gpu/large" of an alternative
  std::string claim;  // "namespace/name"
  std::shared_ptr<const resourcev1::DeviceClass> device_class;
  std::vector<SelectorPtr> selectors;  // those of the class first
  size_t class_selectors = 0;          // so many
  bool all = false;                    // all matching devices of the node, at least one; else `count`
  int64_t count = 1;
  bool admin_access = false;
  const google::protobuf::RepeatedPtrField<resourcev1::DeviceToleration>* tolerations = nullptr;
  const resourcev1::CapacityRequirements* capacity = nullptr;  // null: none
};

struct RequestGroup {
  std::string name;
  std::vector<RequestPlan> alternatives;  // the first one that fits is taken; one for an exact request
  bool first_available = false;
};

struct ConstraintPlan {
  std::string attribute;              // "domain/name"
  bool distinct = false;              // all values differ; else all are equal
  std::vector<std::string> requests;  // empty: all
  bool AppliesTo(const RequestGroup& group, const RequestPlan& request) const;
};

struct ClaimPlan {
  std::shared_ptr<const resourcev1::ResourceClaim> claim;  // what the pointers above point into
  std::vector<RequestGroup> requests;
  std::vector<ConstraintPlan> constraints;
};

// Results that a claim can have.
inline constexpr int64_t kAllocationResultsMaxSize = 32;
// Alternatives that a request can have.
inline constexpr int kFirstAvailableMaxSize = 8;

using FindDeviceClass =
    std::function<std::shared_ptr<const resourcev1::DeviceClass>(const std::string& name)>;

// An error in upstream's words, for people: a class does not exist, a selector does not compile, or the claim uses what this
// version does not know.
Result<ClaimPlan> PlanClaim(std::shared_ptr<const resourcev1::ResourceClaim> claim,
                            const FindDeviceClass& find_class, SelectorCache& selectors);

}  // namespace keelson::scheduler
