#include "controlplane/scheduler/devices/capacity.h"

#include <algorithm>
#include <limits>

namespace keelson::scheduler {

namespace {

using api::Amount;

Amount RoundUp(const Amount& wanted, const resourcev1::CapacityRequestPolicyRange& range) {
  const Amount min = Amount::Of(range.min());
  if (wanted < min) return min;
  if (!range.has_step()) return wanted;
  const int64_t step = Amount::Of(range.step()).Value(), first = min.Value();
  if (step <= 0) return wanted;
  const int64_t above = wanted.Value() - first;  // not negative: `wanted` is at least `min`
  const int64_t steps = above / step + (above % step > 0 ? 1 : 0);
  // Too large for any device: the caller refuses it.
  if (steps > (std::numeric_limits<int64_t>::max() - first) / step) return wanted;
  return Amount::FromBytes(first + steps * step);
}

Amount Consumed(const Amount* wanted, const resourcev1::DeviceCapacity& capacity) {
  const resourcev1::CapacityRequestPolicy& policy = capacity.request_policy();
  if (!wanted) return Amount::Of(policy.has_default_() ? policy.default_() : capacity.value());
  if (policy.valid_range().has_min()) return RoundUp(*wanted, policy.valid_range());
  for (const auto& valid : policy.valid_values()) {
    if (*wanted <= Amount::Of(valid)) return Amount::Of(valid);
  }
  return *wanted;
}

bool Violates(const Amount& consumed, const resourcev1::CapacityRequestPolicy& policy) {
  if (policy.has_default_() && consumed == Amount::Of(policy.default_())) return false;
  if (policy.has_valid_range()) {
    const resourcev1::CapacityRequestPolicyRange& range = policy.valid_range();
    if (range.has_max() && consumed > Amount::Of(range.max())) return true;
    const int64_t step = range.has_step() ? Amount::Of(range.step()).Value() : 0;
    return step > 0 && (consumed.Value() - Amount::Of(range.min()).Value()) % step != 0;
  }
  const auto& values = policy.valid_values();
  return !values.empty() &&
         std::none_of(values.begin(), values.end(), [&](const auto& v) { return consumed == Amount::Of(v); });
}

}  // namespace

std::optional<Capacity> TakeCapacity(const resourcev1::Device& device,
                                     const resourcev1::CapacityRequirements* request,
                                     const Capacity& consumed) {
  std::map<std::string_view, Amount> wanted;
  if (request) {
    for (const auto& [name, quantity] : request->requests()) {
      if (!device.capacity().contains(name)) return std::nullopt;
      wanted.emplace(name, Amount::Of(quantity));
    }
  }
  Capacity out;
  for (const auto& [name, capacity] : device.capacity()) {
    const auto asked = wanted.find(name);
    const Amount amount = Consumed(asked == wanted.end() ? nullptr : &asked->second, capacity);
    if (capacity.has_request_policy() && Violates(amount, capacity.request_policy())) return std::nullopt;
    Amount total = amount;
    if (const auto before = consumed.find(name); before != consumed.end()) total += before->second;
    if (total > Amount::Of(capacity.value())) return std::nullopt;
    out.emplace(name, amount);
  }
  return out;
}

}  // namespace keelson::scheduler
