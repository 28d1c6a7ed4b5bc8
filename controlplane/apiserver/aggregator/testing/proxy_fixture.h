// For tests: an extension API server at localhost behind the proxy, real servers on both sides, and a real client.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/admission/testing/object_store.h"
#include "controlplane/apiserver/aggregator/proxy.h"
#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/apiserver/request/header_writer.h"
#include "lib/http/testing/fixture.h"

namespace keelson::apiserver {

using Requests = std::shared_ptr<const http::ServerRequest>;
using Writer = std::shared_ptr<http::ResponseWriter>;

// An extension server at localhost, and in front of it a server that passes everything on as the user jane.
class AggregationProxyTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    store_ = new ObjectStore;
    store_->Put<corev1::Service>(R"({"metadata":{"name":"wardle","namespace":"default"},
        "spec":{"type":"ExternalName","externalName":"localhost"}})");
    store_->Put<corev1::Service>(R"({"metadata":{"name":"empty","namespace":"default"},
        "spec":{"type":"ClusterIP","clusterIP":"10.96.0.9","ports":[{"port":443}]}})");
  }
  static void TearDownTestSuite() { delete store_; }

  AggregationProxyTest()
      : proxy_certificate_(front_pki_.Client("front-proxy", {})),
        clients_(resolver_, {proxy_certificate_.certificate_pem, proxy_certificate_.key_pem}),
        services_(store_->get()) {}

  // Makes the extension server.
  void Serve(http::Handler handler, http::ServerOptions options = {}) {
    options.tls = http::TlsOptions(pki_).tls;
    options.tls->client_ca_file = front_pki_.ca_file();
    backend_ = std::make_unique<http::RunningServer>(std::move(handler), std::move(options));
  }
  std::shared_ptr<ApiServiceEntry> Entry() const {
    auto out = std::make_shared<ApiServiceEntry>();
    out->name = "v1.example.com";
    out->group = "example.com";
    out->version = "v1";
    out->local = false;
    out->available = true;
    out->service_ns = "default";
    out->service_name = "wardle";
    out->service_port = backend_ ? backend_->port() : 1;
    out->ca_pem = pki_.ca_pem();
    return out;
  }
  // Starts the server in front.
  void Front(ApiServicePtr entry, std::chrono::milliseconds limit = http::kSoon) {
    http::ServerOptions options;
    options.streams_body = [](const http::ServerRequest&) { return true; };
    auto handler = [=, this](Requests request, Writer writer) {
      auto context = std::make_shared<Context>();
      context->info = ParseRequestInfo(request->method, request->path, request->query);
      context->output = PlainOutput(*request);
      context->user = {"jane", "", {"dev"}, {}};
      context->audit_id = "ours";
      if (!audit::IsLongRunning(context->info)) context->deadline = SteadyTime::clock::now() + limit;
      context->request = std::move(request);
      context->writer =
          std::make_shared<HeaderWriter>(std::move(writer), http::Headers{{"Audit-Id", context->audit_id}});
      proxy_.Handle(context, entry, [this, context] { Done(context->status); });
    };
    front_ = std::make_unique<http::RunningServer>(std::move(handler), std::move(options));
    client_ = http::NewClient({.base_url = front_->Url()});
  }
  void Done(int status) {
    MutexLock lock(mutex_);
    done_.push_back(status);
    changed_.notify_all();
  }
  std::vector<int> AwaitDone(size_t count) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, http::kSoon,
                      [&]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return done_.size() >= count; });
    return done_;
  }
  http::ClientResponse Get(const std::string& target, http::Headers headers = {}) {
    http::ClientRequest request;
    request.target = target;
    request.headers = std::move(headers);
    return client_->Do(request, http::kSoon).value();
  }

  inline static ObjectStore* store_;
  crypto::TestPki pki_, front_pki_;
  const crypto::TestCertificate proxy_certificate_;
  ServiceResolver resolver_{store_->get()};
  ExtensionClients clients_;
  ApiServices services_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> done_ KEELSON_GUARDED_BY(mutex_);
  AggregationProxy proxy_{services_, clients_, {true, {{"X-Custom-User"}, {"X-Custom-Extra-"}}}};
  std::unique_ptr<http::RunningServer> backend_, front_;
  std::unique_ptr<http::Client> client_;
};

}  // namespace keelson::apiserver
