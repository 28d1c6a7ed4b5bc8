// The state of one request.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/apiserver/audit/record.h"
#include "controlplane/apiserver/request/negotiation.h"
#include "controlplane/apiserver/request/request_info.h"
#include "controlplane/apiserver/request/user.h"
#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

struct Context {
  std::shared_ptr<const http::ServerRequest> request;
  std::shared_ptr<http::ResponseWriter> writer;
  User user;  // after impersonation
  RequestInfo info;
  const api::ResourceInfo* resource = nullptr;  // the requested resource's row; null for non-resource paths
  Output output;
  std::vector<std::string> warnings;
  std::map<std::string, std::string> audit_annotations;  // annotations by admission plugins
  std::optional<metav1::Status> denial;  // by an admission plugin; the response to an error with its message
  int retry_after_seconds = 0;           // Retry-After header of the response; 0: none
  int status = 0;                        // of the response, once sent
  SteadyTime deadline = SteadyTime::max();  // does not apply to streams
  std::string audit_id;                     // every response has it as a header
  std::shared_ptr<audit::Record> audit;     // null: not audited

  const http::Query& query() const { return request->query; }
};

}  // namespace keelson::apiserver
