// Audit: who asked for what, when, and what became of it, told to sinks as events of audit.k8s.io/v1.
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
    bool strict = false;  // a request whose arrival cannot be recorded is refused
  };
  Auditor(Policy policy, std::vector<Backend> backends, Clock& clock = Clock::Real());

  struct Subject {
    const User* user = nullptr;          // who sent the request; null: nobody knows
    const User* impersonated = nullptr;  // whom they act as
    std::string_view constraint;         // the verb that lets them ("impersonate:user-info"), if not all do
    const RequestInfo& info;
  };
  // Null when the policy has nothing recorded; an error (kInternal) when it has and that cannot be. `id`: the
  // request's (IdOf()).
  Result<std::shared_ptr<Record>> Begin(const Subject& subject, std::string id,
                                        std::shared_ptr<const http::ServerRequest> request) const;
  // Emits the stages of requests that go on after their reply has begun: to be answered by what this returns.
  static std::shared_ptr<http::ResponseWriter> Follow(std::shared_ptr<http::ResponseWriter> writer,
                                                      std::shared_ptr<Record> record);

 private:
  friend class Record;
  Result<> Send(Stage stage, std::string event) const;

  const Policy policy_;
  const std::vector<Backend> backends_;
  Clock& clock_;
};

// The header Audit-ID, or one made up.
std::string IdOf(const http::Headers& headers);
bool IsLongRunning(const RequestInfo& info);

}  // namespace keelson::apiserver::audit
