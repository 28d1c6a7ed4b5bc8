// The audit record of one request. Handlers add details to it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/audit/policy.h"
#include "controlplane/apiserver/request/request_info.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver::audit {

class Auditor;

// The events of one request. Thread safe.
class Record {
 public:
  // Created by Auditor::Begin().
  Record(const Auditor& auditor, Verdict verdict, std::string id);

  Level level() const { return verdict_.level; }
  // Adds an annotation ("authorization.k8s.io/decision": "allow"). The first value of a name stays.
  void Annotate(std::string_view name, std::string_view value);
  // Sets the Status of a failed request.
  void SetStatus(const metav1::Status& status);
  // Sets the response body before compression; kept if the audit level includes it.
  void SetResponse(std::string_view content_type,
                   const std::vector<std::shared_ptr<const std::string>>& body);
  // Sends an event; each stage once, nothing after ResponseComplete. `code` 0: no response yet.
  Result<> Emit(Stage stage, int code);

 private:
  friend class Auditor;
  void SetRequest(std::shared_ptr<const http::ServerRequest> request, const RequestInfo& info);
  std::string Event(Stage stage, int code) KEELSON_REQUIRES(mutex_);
  void AddRequestObject() KEELSON_REQUIRES(mutex_);

  const Auditor& auditor_;
  const Verdict verdict_;
  const std::string id_;
  std::string common_;  // JSON members common to all events of the request
  std::string received_;
  std::shared_ptr<const http::ServerRequest> request_;
  RequestInfo info_;
  Mutex mutex_;
  unsigned emitted_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::string, std::less<>> annotations_ KEELSON_GUARDED_BY(mutex_);
  std::optional<metav1::Status> status_ KEELSON_GUARDED_BY(mutex_);
  std::string request_object_ KEELSON_GUARDED_BY(mutex_), response_object_ KEELSON_GUARDED_BY(mutex_);
  std::string uid_ KEELSON_GUARDED_BY(mutex_), version_ KEELSON_GUARDED_BY(mutex_);
  bool request_read_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::apiserver::audit
