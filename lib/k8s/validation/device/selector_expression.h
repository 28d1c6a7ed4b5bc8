// CEL selectors of devices: compiling and running them (k8s.io/dynamic-resource-allocation/cel). Thread safe.
#pragma once

#include <memory>
#include <string_view>

#include "lib/api/proto/resource_v1.pb.h"
#include "lib/base/error.h"

namespace keelson::cel {
class Program;
}

namespace keelson::k8s {

// The program of an expression on the variable `device`, of type bool or dyn. kInvalid in upstream's words: "compilation
// failed: ERROR: ...", "must evaluate to bool or the unknown type, not string". kForbidden: it may cost too much, "too
// complex, exceeds cost limit".
Result<std::shared_ptr<const cel::Program>> CompileDeviceSelector(std::string_view expression);
// The same for an expression that the API server has stored, perhaps of a newer release: it may use all that this version
// knows, and only its cost at run time is limited.
Result<std::shared_ptr<const cel::Program>> CompileStoredDeviceSelector(std::string_view expression);

// Whether the driver's device matches a program of CompileStoredDeviceSelector(). kInvalid in upstream's words when the
// expression fails on it or is no bool: "no such key: x", "operation cancelled: actual cost limit exceeded".
Result<bool> DeviceMatches(const cel::Program& program, std::string_view driver,
                           const api::resource::v1::Device& device);

}  // namespace keelson::k8s
