// A small plain HTTP server as a service of a daemon: health and metrics pages.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/service_group.h"
#include "lib/http/server/server.h"

namespace keelson::http {

// Listens on IP address `host`; an empty one means no server.
void AddServer(ServiceGroup& group, const std::string& name, const std::string& host, uint16_t port,
               Handler handler);

}  // namespace keelson::http
