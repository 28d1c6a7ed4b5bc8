// For tests: an extension API server over HTTPS, with flunders (namespaced) in memory. It believes in X-Remote-* headers
// of clients whose certificate the proxies' CA has signed, and in nobody else.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/crypto/testing/test_pki.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

class ExtensionServer {
 public:
  static constexpr char kGroup[] = "wardle.example.com", kVersion[] = "v1alpha1";

  // `proxy_ca_file`: the CA of front proxies. `aggregated`: it serves aggregated discovery.
  ExtensionServer(const std::string& proxy_ca_file, bool aggregated);
  ~ExtensionServer();

  uint16_t port() const { return server_->port(); }
  const std::string& ca_pem() const { return pki_.ca_pem(); }
  void Stop();
  // "user|group,group" of each request for flunders since the last call, and whether a client's credentials came along.
  std::vector<std::string> Users();
  bool leaked() const;
  // Requests for this path are not answered until Stop().
  static constexpr char kSilent[] = "silent";

 private:
  using Request = http::ServerRequest;
  using Writer = std::shared_ptr<http::ResponseWriter>;
  void Handle(const Request& request, const Writer& writer);
  void HandleFlunders(const Request& request, const Writer& writer, const std::string& ns,
                      const std::string& name);
  std::string Discovery(const std::string& path, const Request& request, std::string& type) const;
  void Tell(const std::string& type, const std::string& object) KEELSON_REQUIRES(mutex_);

  crypto::TestPki pki_;
  const bool aggregated_;
  mutable Mutex mutex_;
  std::map<std::string, std::string> objects_ KEELSON_GUARDED_BY(mutex_);  // JSON by namespace/name
  std::vector<Writer> watchers_ KEELSON_GUARDED_BY(mutex_), silent_ KEELSON_GUARDED_BY(mutex_);
  std::vector<std::string> users_ KEELSON_GUARDED_BY(mutex_);
  bool leaked_ KEELSON_GUARDED_BY(mutex_) = false;
  int revision_ KEELSON_GUARDED_BY(mutex_) = 1;
  std::unique_ptr<http::Server> server_;
  std::jthread thread_;
};

}  // namespace keelson::apiserver
