#include "controlplane/apiserver/webhook/client.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/client/transport.h"
#include "lib/http/client/client.h"

namespace keelson::apiserver {
namespace {

constexpr int kTries = 3;
constexpr std::chrono::seconds kReloadPeriod{30};

class Client : public WebhookClient {
 public:
  Client(std::string file, std::chrono::milliseconds timeout) : file_(std::move(file)), timeout_(timeout) {}

  Result<> Load() KEELSON_EXCLUDES(mutex_) {
    KEELSON_ASSIGN_OR_RETURN(client::RestConfig config, client::LoadKubeconfig(file_));
    auto scheme = config.server.find("://");
    if (scheme == std::string::npos) return Error(Code::kInvalid, file_ + ": server is no URL");
    auto slash = config.server.find('/', scheme + 3);
    http::ClientOptions options;
    options.base_url = config.server.substr(0, slash);
    options.tls = {config.ca_pem, config.certificate_pem, config.key_pem, config.tls_server_name,
                   config.insecure};
    options.connect_timeout = std::min(timeout_, options.connect_timeout);
    auto made = http::Client::Create(std::move(options));
    if (!made) return made.error().Wrap(file_);
    std::string token = config.token;
    if (!config.token_file.empty()) {
      KEELSON_ASSIGN_OR_RETURN(token, ReadFile(config.token_file));
      while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back()))) token.pop_back();
    }
    MutexLock lock(mutex_);
    client_ = std::move(*made);
    target_ = slash == std::string::npos ? "/" : config.server.substr(slash);
    token_ = std::move(token);
    loaded_ = SteadyTime::clock::now();
    return {};
  }

  Result<std::string> Post(const std::string& json) override {
    Reload();
    http::ClientRequest request;
    std::shared_ptr<http::Client> client;
    {
      MutexLock lock(mutex_);
      client = client_;
      request.target = target_;
      if (!token_.empty()) request.headers.Set("Authorization", "Bearer " + token_);
    }
    request.method = "POST";
    request.headers.Set("Content-Type", "application/json");
    request.headers.Set("Accept", "application/json");
    request.body = json;
    const SteadyTime deadline = SteadyTime::clock::now() + timeout_;
    for (int attempt = 1;; ++attempt) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyTime::clock::now());
      if (left.count() <= 0) return Error(Code::kTimeout, "no answer in time");
      auto response = client->Do(request, left);
      if (response && response->status / 100 == 2) return std::move(response->body);
      bool again = attempt < kTries && (!response || response->status >= 500 || response->status == 429);
      if (again) continue;
      if (!response) return response.error();
      // The response body may quote the request, including a token.
      return Error(Code::kUnavailable, fmt::format("answered with status {}", response->status));
    }
  }

 private:
  void Reload() KEELSON_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (SteadyTime::clock::now() - loaded_ < kReloadPeriod) return;
      loaded_ = SteadyTime::clock::now();
    }
    (void)Load();  // on failure the previous credentials stay
  }

  const std::string file_;
  const std::chrono::milliseconds timeout_;
  Mutex mutex_;
  std::shared_ptr<http::Client> client_ KEELSON_GUARDED_BY(mutex_);
  std::string target_ KEELSON_GUARDED_BY(mutex_), token_ KEELSON_GUARDED_BY(mutex_);
  SteadyTime loaded_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<WebhookClient>> WebhookClient::FromKubeconfig(const std::string& file,
                                                                     std::chrono::milliseconds timeout) {
  auto client = std::make_unique<Client>(file, timeout);
  KEELSON_RETURN_IF_ERROR(client->Load());
  return std::unique_ptr<WebhookClient>(std::move(client));
}

}  // namespace keelson::apiserver
