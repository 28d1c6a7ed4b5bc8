#include "controlplane/apiserver/request/audit_id.h"

#include "lib/api/meta.h"

namespace keelson::apiserver {

std::string AuditIdOf(const http::Headers& request) {
  const std::string_view given = request.Get(kAuditId);
  return given.empty() ? api::NewUid() : std::string(given);
}

}  // namespace keelson::apiserver
