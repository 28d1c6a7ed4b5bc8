// For tests: an HTTPS server with its own CA, whose responses come from a function.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "lib/crypto/testing/test_pki.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

class HttpsService {
 public:
  struct Answer {
    int status = 200;
    std::string body;
  };
  using Function = std::function<Answer(const http::ServerRequest& request)>;

  explicit HttpsService(Function function) {
    http::ServerOptions options;
    options.tls.emplace();
    options.tls->certificate_file = pki_.server_cert_file();
    options.tls->key_file = pki_.server_key_file();
    auto listening =
        http::Server::Listen(std::move(options), [function = std::move(function)](auto request, auto writer) {
          Answer answer = function(*request);
          writer->Reply(answer.status, {{"Content-Type", "application/json"}}, std::move(answer.body));
        });
    if (!listening) abort();
    server_ = std::move(*listening);
    thread_ = std::jthread([this](std::stop_token stop) { (void)server_->Run(stop, {}); });
  }

  std::string url() const { return "https://127.0.0.1:" + std::to_string(server_->port()); }
  const std::string& ca_pem() const { return pki_.ca_pem(); }
  // A kubeconfig for this service.
  std::string Kubeconfig(const std::string& path) const {
    return "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" +
           url() + path + "', certificate-authority: " + pki_.ca_file() +
           "}}]\nusers: [{name: u, user: {token: webhook-token}}]\n"
           "contexts: [{name: c, context: {cluster: c, user: u}}]\n";
  }
  std::string dir() const { return pki_.dir(); }

 private:
  crypto::TestPki pki_;
  std::unique_ptr<http::Server> server_;
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace keelson::apiserver
