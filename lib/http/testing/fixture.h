// A running server and a client, for tests.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "lib/crypto/testing/test_pki.h"
#include "lib/http/client/client.h"
#include "lib/http/server/server.h"

namespace keelson::http {

constexpr std::chrono::seconds kSoon{10};

class RunningServer {
 public:
  explicit RunningServer(Handler handler, ServerOptions options = {}) {
    auto server = Server::Listen(std::move(options), std::move(handler));
    if (!server) {
      ADD_FAILURE() << server.error().message();
      abort();
    }
    server_ = std::move(*server);
    thread_ = std::jthread(
        [this](std::stop_token stop) { EXPECT_TRUE(server_->Run(stop, std::chrono::milliseconds(300))); });
  }
  void Stop() {
    thread_.request_stop();
    thread_.join();
  }
  uint16_t port() const { return server_->port(); }
  std::string Url(const std::string& scheme = "http") const {
    return scheme + "://127.0.0.1:" + std::to_string(server_->port());
  }
  Server& server() { return *server_; }

 private:
  std::unique_ptr<Server> server_;
  std::jthread thread_;  // joined before server_ is destroyed
};

inline ServerOptions TlsOptions(const crypto::TestPki& pki) {
  ServerOptions options;
  options.tls = crypto::TlsServerOptions{
      pki.server_cert_file(), pki.server_key_file(), pki.ca_file(), "", {"h2", "http/1.1"}};
  return options;
}

inline std::unique_ptr<Client> NewClient(ClientOptions options) {
  auto client = Client::Create(std::move(options));
  if (!client) {
    ADD_FAILURE() << client.error().message();
    abort();
  }
  return std::move(*client);
}

// A transport that a test repeats over.
struct Wire {
  const char* name;
  bool tls, http2;
};
inline std::ostream& operator<<(std::ostream& out, const Wire& wire) { return out << wire.name; }

class HttpTest : public ::testing::TestWithParam<Wire> {
 protected:
  void Serve(Handler handler, ServerOptions options = {}) {
    if (GetParam().tls) options.tls = TlsOptions(pki_).tls;
    server_ = std::make_unique<RunningServer>(std::move(handler), std::move(options));
    client_ = NewClient(Options());
  }
  ClientOptions Options() const {
    ClientOptions options;
    options.base_url = server_->Url(GetParam().tls ? "https" : "http");
    options.tls.ca_pem = pki_.ca_pem();
    options.http2 = GetParam().http2;
    return options;
  }
  crypto::TestPki pki_;
  std::unique_ptr<RunningServer> server_;
  std::unique_ptr<Client> client_;
};

}  // namespace keelson::http
