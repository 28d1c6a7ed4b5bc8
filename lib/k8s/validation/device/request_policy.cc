// Request policies: which amounts of a shared device's capacity a claim may request.
#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/k8s/validation/device/parts.h"

namespace keelson::k8s {
namespace {

using api::Amount;

constexpr int kMaxValues = 10;

FieldError Wrong(const Path& path, const Amount& value, std::string_view why) {
  return Invalid(path, value.ToString(), why);
}

void CheckValues(const resourcev1::CapacityRequestPolicy& policy, const Amount& capacity, const Path& path,
                 FieldErrors& errors) {
  const Amount standard = Amount::Of(policy.default_());
  std::vector<Amount> values;
  for (const auto& value : policy.valid_values()) values.push_back(Amount::Of(value));
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i - 1] > values[i]) {
      errors.push_back(
          Wrong(path.Index(static_cast<int>(i)), values[i], "values must be sorted in ascending order"));
    }
  }
  bool found = false;
  CheckUnique(
      policy.valid_values(), kMaxValues, path, errors,
      [](const auto& value) { return std::to_string(Amount::Of(value).Value()); },
      [&](const auto& value, const Path& place) {
        const Amount amount = Amount::Of(value);
        found = found || amount == standard;
        if (amount <= capacity) return;
        errors.push_back(Wrong(place, amount,
                               fmt::format("option is larger than capacity value: {}", capacity.ToString())));
      });
  if (!found) {
    errors.push_back(Wrong(path, standard, "default value is not valid according to the requestPolicy"));
  }
}

void CheckStep(const Amount& value, const Amount& min, const Amount& step, const Path& path,
               FieldErrors& errors) {
  __extension__ typedef __int128 Wide;
  if ((static_cast<Wide>(value.Value()) - min.Value()) % step.Value() == 0) return;
  errors.push_back(Wrong(path, value,
                         fmt::format("value is not a multiple of a given step ({}) from ({})",
                                     step.ToString(), min.ToString())));
}

void CheckRangeOf(const resourcev1::CapacityRequestPolicy& policy, const Amount& capacity, const Path& path,
                  FieldErrors& errors) {
  const resourcev1::CapacityRequestPolicyRange& range = policy.valid_range();
  const Path at_min = path.Child("min"), at_max = path.Child("max"), at_step = path.Child("step");
  if (!range.has_min()) {
    errors.push_back(Required(at_min, "required when validRange is defined"));
    return;
  }
  const Amount standard = Amount::Of(policy.default_()), min = Amount::Of(range.min()),
               max = Amount::Of(range.max()), step = Amount::Of(range.step());
  const auto larger = [&](const Path& place, const Amount& shown, const char* what, const char* than,
                          const Amount& limit) {
    errors.push_back(Wrong(place, shown, fmt::format("{} {}: {}", what, than, limit.ToString())));
  };
  if (min > capacity) larger(at_min, min, "min", "is larger than capacity value", capacity);
  if (standard < min) larger(at_min, standard, "default", "is less than min", min);
  if (range.has_max()) {
    if (min > max) larger(at_max, min, "min", "is larger than max", max);
    if (max > capacity) larger(at_max, max, "max", "is larger than capacity value", capacity);
    if (standard > max) larger(at_max, standard, "default", "is more than max", max);
  }
  if (!range.has_step()) return;
  if (step <= Amount()) {
    errors.push_back(Wrong(at_step, step, "must be greater than zero"));
    return;
  }
  Amount one = min;
  one += step;
  if (one > capacity) {
    errors.push_back(Wrong(
        at_step, step,
        fmt::format("one step {} is larger than capacity value: {}", one.ToString(), capacity.ToString())));
  }
  CheckStep(standard, min, step, at_step, errors);
  if (range.has_max()) CheckStep(max, min, step, at_step, errors);
}

}  // namespace

void CheckRequestPolicy(const resourcev1::DeviceCapacity& capacity, const Path& path, FieldErrors& errors) {
  const resourcev1::CapacityRequestPolicy& policy = capacity.request_policy();
  const bool values = !policy.valid_values().empty(), range = policy.has_valid_range();
  if (values && range) {
    errors.push_back(Forbidden(path,
                               "exactly one policy can be specified, cannot specify \"validValues\" and "
                               "\"validRange\" at the same time"));
    return;
  }
  if (!values && !range) return;
  const char* field = values ? "validValues" : "validRange";
  if (!policy.has_default_()) {
    errors.push_back(Required(path.Child("default"), fmt::format("required when {} is defined", field)));
    return;
  }
  const Amount whole = Amount::Of(capacity.value());
  values ? CheckValues(policy, whole, path.Child(field), errors)
         : CheckRangeOf(policy, whole, path.Child(field), errors);
}

}  // namespace keelson::k8s
