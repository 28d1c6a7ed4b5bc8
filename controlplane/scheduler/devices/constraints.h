// The constraints of a claim while its devices are chosen.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controlplane/scheduler/devices/claim_plan.h"

namespace keelson::scheduler {

// The values of one constraint among the devices taken so far. A value; not thread safe.
class ConstraintState {
 public:
  explicit ConstraintState(const ConstraintPlan& plan) : plan_(&plan) {}
  // Takes the device, unless that violates the constraint: then nothing changes. A device without the attribute violates
  // it.
  bool Add(const RequestGroup& group, const RequestPlan& request, const std::string& driver,
           const resourcev1::Device& device);
  // Undoes an Add() of the same arguments.
  void Remove(const RequestGroup& group, const RequestPlan& request, const std::string& driver,
              const resourcev1::Device& device);

 private:
  // Type and value; "": the device does not have the attribute.
  std::string ValueOf(const std::string& driver, const resourcev1::Device& device) const;

  const ConstraintPlan* plan_;
  std::map<std::string, int> taken_;
};

}  // namespace keelson::scheduler
