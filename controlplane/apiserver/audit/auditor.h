// Audit logging: records requests as audit.k8s.io/v1 events and sends them to sinks.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/audit/policy.h"
#include "controlplane/apiserver/audit/record.h"
#include "controlplane/apiserver/audit/sink.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver::audit {

class Auditor {
 public:
  struct Backend {
    std::string name;
    std::unique_ptr<Sink> sink;
    bool strict = false;  // reject a request when its RequestReceived event cannot be written
  };
  Auditor(Policy policy, std::vector<Backend> backends, Clock& clock = Clock::Real());

  struct Subject {
    const User* user = nullptr;          // the authenticated user; null: unknown
    const User* impersonated = nullptr;  // the impersonated user
    // The verb that allowed the impersonation ("impersonate:user-info"), if constrained
    std::string_view constraint;
    const RequestInfo& info;
  };
  // Returns null when the policy records nothing. kInternal when a strict backend fails. `id`: the audit ID
  // (request/audit_id.h).
  Result<std::shared_ptr<Record>> Begin(const Subject& subject, std::string id,
                                        std::shared_ptr<const http::ServerRequest> request) const;
  // Wraps the writer of a long-running request, so that ResponseStarted and ResponseComplete are recorded.
  static std::shared_ptr<http::ResponseWriter> Follow(std::shared_ptr<http::ResponseWriter> writer,
                                                      std::shared_ptr<Record> record);

 private:
  friend class Record;
  Result<> Send(Stage stage, std::string event) const;

  const Policy policy_;
  const std::vector<Backend> backends_;
  Clock& clock_;
};

bool IsLongRunning(const RequestInfo& info);

}  // namespace keelson::apiserver::audit
