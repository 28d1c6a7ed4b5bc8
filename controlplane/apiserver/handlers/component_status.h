// The deprecated componentstatuses API.
#pragma once

#include <string>

#include "controlplane/apiserver/endpoints/context.h"

namespace keelson::apiserver {

// `etcd_problem`: empty when etcd is healthy.
void HandleComponentStatus(Context& context, const std::string& etcd_problem);

}  // namespace keelson::apiserver
