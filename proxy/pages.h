// The HTTP pages of kube-proxy, and the servers that show them.
#pragma once

#include <string>

#include "lib/base/service_group.h"
#include "lib/http/server.h"
#include "proxy/config.h"

namespace keelson::proxy {

// /metrics, /proxyMode, /healthz, /configz: of the metrics address.
http::Handler MetricsPages(const std::string& configz);

// A server on `address`; an empty one means none. One that cannot listen tries again, or with `hard_fail`
// ends the group.
Result<> AddPages(ServiceGroup& group, const std::string& name, const std::string& address,
                  uint16_t default_port, bool hard_fail, http::Handler handler);

}  // namespace keelson::proxy
