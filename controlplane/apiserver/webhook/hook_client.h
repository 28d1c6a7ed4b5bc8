// Calls of the webhooks that objects of the API configure: for admission and for conversion.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "controlplane/apiserver/webhook/endpoint.h"
#include "controlplane/apiserver/webhook/service_resolver.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/http/client/client.h"

namespace keelson::apiserver::webhook {

// One call that is under way. Destroying it gives the call up.
class HookCall {
 public:
  // Blocks until the response is there or the time is over. Call it once. An error has upstream's words; its
  // code is that of the response, if there was one.
  Result<std::string> Await();

 private:
  friend class HookClient;
  std::shared_ptr<http::Client> client_;  // outlives `pending_`
  std::unique_ptr<http::PendingResponse> pending_;
  std::string prefix_, url_, address_;
  SteadyTime deadline_;
  std::optional<Error> failure_;  // the call has not begun
};

class HookClient {  // thread safe
 public:
  // `services` must outlive the client. `prefix` begins the messages of failed calls.
  HookClient(const ServiceResolver& services, std::string prefix)
      : services_(services), prefix_(std::move(prefix)) {}

  // Sends a review, in JSON, to the path of `endpoint`, which may have a query. The call takes until `deadline`
  // at most. No redirects; responses have at most 8 MiB.
  HookCall Start(const Endpoint& endpoint, std::string review, SteadyTime deadline);

 private:
  struct Target {
    std::shared_ptr<http::Client> client;
    std::string address;  // host:port that it connects to
  };
  Result<Target> TargetOf(const Endpoint& endpoint);
  Result<std::shared_ptr<http::Client>> ClientFor(const std::string& address, const std::string& server_name,
                                                  const std::string& ca_bundle);

  const ServiceResolver& services_;
  const std::string prefix_;
  Mutex mutex_;
  // By address, name to verify and CAs: webhooks on one server share its connections.
  std::map<std::string, std::shared_ptr<http::Client>> clients_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::string> last_address_ KEELSON_GUARDED_BY(mutex_);  // by Service
};

}  // namespace keelson::apiserver::webhook
