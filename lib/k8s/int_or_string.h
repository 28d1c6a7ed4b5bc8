// util/intstr: a number, or a string such as a port name or "25%".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::k8s {

intstr::IntOrString FromInt(int32_t value);
intstr::IntOrString FromString(std::string_view value);
bool IsString(const intstr::IntOrString& value);
std::string ToString(const intstr::IntOrString& value);
// The number, or that percentage ("25%") of `total`. kInvalid when the string is no percentage.
Result<int64_t> ScaledValue(const intstr::IntOrString& value, int64_t total, bool round_up);

}  // namespace keelson::k8s
