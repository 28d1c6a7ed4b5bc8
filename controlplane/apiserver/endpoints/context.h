// One request on its way through the server.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/audit/record.h"
#include "controlplane/apiserver/request/negotiation.h"
#include "controlplane/apiserver/request/request_info.h"
#include "controlplane/apiserver/request/user.h"
#include "lib/api/scheme.h"
#include "lib/base/clock.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

struct Context {
  std::shared_ptr<const http::ServerRequest> request;
  std::shared_ptr<http::ResponseWriter> writer;
  User user;  // after impersonation
  RequestInfo info;
  const api::ResourceInfo* resource = nullptr;  // the row that was asked for; null for non-resource paths
  Output output;
  std::vector<std::string> warnings;
  std::map<std::string, std::string> audit_annotations;  // what admission has to say of the request
  int retry_after_seconds = 0;                           // of the reply's header; 0: none
  int status = 0;                                        // of the reply, once there is one
  SteadyTime deadline = SteadyTime::max();               // of what is not a stream
  http::Headers reply_headers;                           // that every reply has: Audit-Id, ...
  std::shared_ptr<audit::Record> audit;                  // null: nothing is recorded of this request

  const http::Query& query() const { return request->query; }
};

}  // namespace keelson::apiserver
