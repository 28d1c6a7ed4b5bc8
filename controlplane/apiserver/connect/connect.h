// Subresources that the API server proxies: pods/log, exec, attach, portforward, and pods/proxy,
// services/proxy, nodes/proxy.
#pragma once

#include <list>
#include <memory>
#include <stop_token>
#include <thread>

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/connect/kubelet_client.h"
#include "controlplane/apiserver/connect/link_rewriter.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

class ConnectHandler {  // thread safe
 public:
  ConnectHandler(registry::Registry& registry, const Authorizer& authorizer, const AdmissionChain& admission,
                 BackendClients& clients);
  ~ConnectHandler();

  static bool Serves(const api::ResourceInfo& resource);
  void Handle(Context& context);

 private:
  Result<> Log(Context& context);
  Result<> Stream(Context& context);  // exec, attach, portforward
  // The query with the options of the connection, after admission, which may change them.
  Result<http::Query> Admit(Context& context);
  Result<> Proxy(Context& context);
  // Forwards the request and the response, including long-running responses and protocol upgrades.
  Result<> PassOn(Context& context, std::shared_ptr<http::Client> client, std::string target,
                  ProxyPlace place);
  void Pump(std::shared_ptr<http::ResponseWriter> writer, std::shared_ptr<http::Client> client,
            std::unique_ptr<http::ResponseReader> reader, std::shared_ptr<HtmlRewriter> rewriter = nullptr);
  Result<std::shared_ptr<const corev1::Pod>> GetPod(std::string_view ns, std::string_view name);
  // scheme://address:port of the target; in proxy.cc.
  Result<std::string> ServiceUrl(const Context& context);
  Result<std::string> PodUrl(const Context& context);

  registry::Registry& registry_;
  const Authorizer& authorizer_;
  const AdmissionChain& admission_;
  BackendClients& clients_;

  // A blocking response body is copied on its own thread, which ends with the stream.
  struct Pumping {
    std::jthread thread;
    std::shared_ptr<std::atomic<bool>> done;
  };
  Mutex mutex_;
  std::list<Pumping> pumps_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
