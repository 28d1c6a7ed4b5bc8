// Passes requests for an extension API server's groups on to it: whatever the resource, with watches and upgrades. The
// caller has authenticated and authorized the request; the extension server learns the user from headers that it
// believes because of this server's client certificate.
//
// A request holds no thread while it waits, so a server that does not answer delays no other request. Bodies go both ways
// as they arrive, of any length: each side waits for the other when that is behind.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controlplane/apiserver/aggregator/api_services.h"
#include "controlplane/apiserver/aggregator/extension_clients.h"
#include "controlplane/apiserver/aggregator/outgoing.h"
#include "controlplane/apiserver/endpoints/completions.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

class AggregationProxy {  // thread safe
 public:
  struct Options {
    bool reject_redirects = true;  // of extension servers
    IdentityHeaderNames headers;
  };
  AggregationProxy(const ApiServices& services, ExtensionClients& clients, Options options);
  // Waits until no completion runs; later ones are dropped.
  ~AggregationProxy();

  // The APIService that the request, or the OpenAPI document, is for; null: this server answers itself.
  ApiServicePtr Find(std::string_view path) const;
  // Answers the request, now or later. `done` is called once, on any thread, when the response (context->status) is
  // complete. 503 when the server is not available, cannot be reached or would send the request back here; 504 after
  // context->deadline, which streams do not have; 429 when too many requests wait for this server.
  void Handle(std::shared_ptr<Context> context, const ApiServicePtr& service, std::function<void()> done);

 private:
  // Counts a waiting request of an APIService until it is destroyed. Null: too many.
  std::shared_ptr<void> Enter(const std::string& name);

  const ApiServices& services_;
  ExtensionClients& clients_;
  const bool reject_redirects_;
  const OutgoingRequests outgoing_;
  const std::shared_ptr<Completions> completions_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<std::atomic<int>>> waiting_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
