// The deprecated componentstatuses API.
#pragma once

#include "controlplane/apiserver/endpoints/context.h"

namespace keelson::apiserver {

void HandleComponentStatus(Context& context, bool etcd_healthy);

}  // namespace keelson::apiserver
