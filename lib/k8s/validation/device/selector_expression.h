// CEL selectors of devices: compiling them (k8s.io/dynamic-resource-allocation/cel).
#pragma once

#include <memory>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::cel {
class Program;
}

namespace keelson::k8s {

// The program of an expression on the variable `device`, of type bool or dyn. kInvalid in upstream's words: "compilation
// failed: ERROR: ...", "must evaluate to bool or the unknown type, not string". kForbidden: it may cost too much, "too
// complex, exceeds cost limit". Thread safe.
Result<std::shared_ptr<const cel::Program>> CompileDeviceSelector(std::string_view expression);

}  // namespace keelson::k8s
