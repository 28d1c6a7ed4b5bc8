#include "controlplane/scheduler/devices/constraints.h"

#include <fmt/format.h>

namespace keelson::scheduler {

std::string ConstraintState::ValueOf(const std::string& driver, const resourcev1::Device& device) const {
  auto found = device.attributes().find(plan_->attribute);
  const size_t slash = plan_->attribute.find('/');
  if (found == device.attributes().end() && slash != std::string::npos &&
      plan_->attribute.substr(0, slash) == driver) {
    found = device.attributes().find(plan_->attribute.substr(slash + 1));
  }
  if (found == device.attributes().end()) return "";
  const resourcev1::DeviceAttribute& attribute = found->second;
  if (attribute.has_string()) return "s:" + attribute.string();
  if (attribute.has_int_()) return fmt::format("i:{}", attribute.int_());
  if (attribute.has_bool_()) return fmt::format("b:{}", attribute.bool_());
  if (attribute.has_version()) return "v:" + attribute.version();
  return "";
}

bool ConstraintState::Add(const RequestGroup& group, const RequestPlan& request, const std::string& driver,
                          const resourcev1::Device& device) {
  if (!plan_->AppliesTo(group, request)) return true;
  const std::string value = ValueOf(driver, device);
  if (value.empty()) return false;
  const bool known = taken_.contains(value);
  if (plan_->distinct ? known : !taken_.empty() && !known) return false;
  ++taken_[value];
  return true;
}

void ConstraintState::Remove(const RequestGroup& group, const RequestPlan& request, const std::string& driver,
                             const resourcev1::Device& device) {
  if (!plan_->AppliesTo(group, request)) return;
  const auto it = taken_.find(ValueOf(driver, device));
  if (--it->second == 0) taken_.erase(it);
}

}  // namespace keelson::scheduler
