// Subresources that lead through the API server to somewhere else: pods/log, exec, attach, portforward, and
// pods/proxy, services/proxy, nodes/proxy.
#pragma once

#include <list>
#include <memory>
#include <stop_token>
#include <thread>

#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/connect/kubelet_client.h"
#include "controlplane/apiserver/connect/link_rewriter.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

class ConnectHandler {  // thread safe
 public:
  ConnectHandler(registry::Registry& registry, const Authorizer& authorizer, BackendClients& clients);
  ~ConnectHandler();

  static bool Serves(const api::ResourceInfo& resource);
  void Handle(Context& context);

 private:
  Result<> Log(Context& context);
  Result<> Stream(Context& context);  // exec, attach, portforward
  Result<> Proxy(Context& context);
  // Passes the request on and the answer back, also when it goes on for long or changes protocol.
  Result<> PassOn(Context& context, std::shared_ptr<http::Client> client, std::string target,
                  ProxyPlace place);
  void Pump(std::shared_ptr<http::ResponseWriter> writer, std::shared_ptr<http::Client> client,
            std::unique_ptr<http::ResponseReader> reader, std::shared_ptr<HtmlRewriter> rewriter = nullptr);
  Result<std::shared_ptr<const corev1::Pod>> GetPod(std::string_view ns, std::string_view name);
  // scheme://address:port of who is meant; in proxy.cc.
  Result<std::string> ServiceUrl(const Context& context);
  Result<std::string> PodUrl(const Context& context);

  registry::Registry& registry_;
  const Authorizer& authorizer_;
  BackendClients& clients_;

  // A body that comes from a blocking reader takes a thread; each ends with its stream.
  struct Pumping {
    std::jthread thread;
    std::shared_ptr<std::atomic<bool>> done;
  };
  Mutex mutex_;
  std::list<Pumping> pumps_ GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
