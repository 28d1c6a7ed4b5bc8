// --audit-log-format=legacy: formats an event as a line of text.
#pragma once

#include <string>
#include <string_view>

namespace keelson::apiserver::audit {

// 2026-01-31T23:59:59.123456Z AUDIT: id="..." stage="..." ip="..." method="..." user="..." groups="..."
// as="..." asgroups="..." namespace="..." uri="..." response="..."
std::string LegacyLine(std::string_view event_json);

}  // namespace keelson::apiserver::audit
