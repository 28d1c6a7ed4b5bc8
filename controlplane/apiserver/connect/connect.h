// Subresources that the API server proxies: pods/log, exec, attach, portforward, and pods/proxy,
// services/proxy, nodes/proxy.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <thread>

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/connect/kubelet_client.h"
#include "controlplane/apiserver/endpoints/completions.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/registry/registry.h"

namespace keelson::apiserver {

class ConnectHandler {  // thread safe
 public:
  ConnectHandler(registry::Registry& registry, const Authorizer& authorizer, const AdmissionChain& admission,
                 BackendClients& clients);
  // Waits until no completion runs; later ones are not told.
  ~ConnectHandler();

  static bool Serves(const api::ResourceInfo& resource);
  // Whether the request's body may be a stream: those of proxied requests are passed on as they arrive.
  static bool StreamsBody(const RequestInfo& info);
  // Answers the request. False: the response comes later, and `done` is called then, once and on any thread.
  bool Handle(const std::shared_ptr<Context>& context, std::function<void()> done);

 private:
  Result<> Log(Context& context);
  Result<> Stream(Context& context);  // exec, attach, portforward
  // The query with the options of the connection, after admission, which may change them.
  Result<http::Query> Admit(Context& context);
  // Passes the request on, also one that asks for a change of protocol. Returns as Handle() does.
  Result<bool> Proxy(const std::shared_ptr<Context>& context, std::function<void()> done);
  void Pump(std::shared_ptr<http::ResponseWriter> writer, std::shared_ptr<http::Client> client,
            std::unique_ptr<http::ResponseReader> reader);
  Result<std::shared_ptr<const corev1::Pod>> GetPod(std::string_view ns, std::string_view name);
  // scheme://address:port of the target; in proxy.cc.
  Result<std::string> ServiceUrl(const Context& context);
  Result<std::string> PodUrl(const Context& context);

  registry::Registry& registry_;
  const Authorizer& authorizer_;
  const AdmissionChain& admission_;
  BackendClients& clients_;
  const std::shared_ptr<Completions> completions_ = std::make_shared<Completions>();

  // A blocking response body is copied on its own thread, which ends with the stream.
  struct Pumping {
    std::jthread thread;
    std::shared_ptr<std::atomic<bool>> done;
  };
  Mutex mutex_;
  std::list<Pumping> pumps_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
