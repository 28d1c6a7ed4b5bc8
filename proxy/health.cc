#include "proxy/health.h"

#include <fmt/format.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "lib/base/log.h"

namespace keelson::proxy {
namespace {

std::string Stamp(WallTime time) {
  std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

const http::Headers kJson = {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}};

}  // namespace

void Health::Queued() {
  MutexLock lock(mutex_);
  if (!waiting_since_) waiting_since_ = clock_.SteadyNow();
}

void Health::Synced() {
  MutexLock lock(mutex_);
  waiting_since_.reset();
  last_synced_ = clock_.Now();
}

void Health::SetNodeEligible(bool eligible) {
  MutexLock lock(mutex_);
  node_eligible_ = eligible;
}

bool Health::InTime() const { return !waiting_since_ || clock_.SteadyNow() - *waiting_since_ < patience_; }

bool Health::Live() const {
  MutexLock lock(mutex_);
  return InTime() && last_synced_;
}

bool Health::Healthy() const {
  MutexLock lock(mutex_);
  return InTime() && last_synced_ && node_eligible_;
}

std::string Health::Describe() const {
  MutexLock lock(mutex_);
  std::string updated = last_synced_ ? Stamp(*last_synced_) : "0001-01-01T00:00:00Z";
  return fmt::format(R"({{"lastUpdated": "{}","currentTime": "{}", "nodeEligible": {}}})", updated,
                     Stamp(clock_.Now()), node_eligible_);
}

http::Handler Health::Handler() {
  return [this](std::shared_ptr<const http::ServerRequest> request,
                std::shared_ptr<http::ResponseWriter> writer) {
    if (request->path == "/healthz" || request->path == "/livez") {
      bool well = request->path == "/healthz" ? Healthy() : Live();
      writer->Reply(well ? 200 : 503, kJson, Describe());
    } else {
      writer->Reply(404, {{"Content-Type", "text/plain; charset=utf-8"}}, "404 page not found\n");
    }
  };
}

struct HealthCheckServers::Listener {
  uint16_t port = 0;
  std::shared_ptr<std::atomic<size_t>> local = std::make_shared<std::atomic<size_t>>(0);
  std::unique_ptr<http::Server> server;
  std::jthread thread;
};

HealthCheckServers::HealthCheckServers(const Health& health) : health_(health) {}
HealthCheckServers::~HealthCheckServers() = default;

void HealthCheckServers::Sync(const std::map<std::string, HealthCheck>& wanted) {
  std::erase_if(listeners_, [&](const auto& entry) {
    auto still = wanted.find(entry.first);
    return still == wanted.end() || still->second.port != entry.second->port;
  });
  for (const auto& [key, check] : wanted) {
    auto& listener = listeners_[key];
    if (listener) {
      listener->local->store(check.local_ready);
      continue;
    }
    listener = std::make_unique<Listener>();
    listener->port = check.port;
    listener->local->store(check.local_ready);
    auto slash = key.find('/');
    std::string service = fmt::format(R"({{"service": {{"namespace": "{}","name": "{}"}},"localEndpoints": )",
                                      key.substr(0, slash), key.substr(slash + 1));
    auto handler = [this, service, local = listener->local](std::shared_ptr<const http::ServerRequest>,
                                                            std::shared_ptr<http::ResponseWriter> writer) {
      size_t count = local->load();
      bool well = health_.Healthy();
      std::string body = fmt::format(R"({}{},"serviceProxyHealthy": {}}})", service, count, well);
      http::Headers headers = kJson;
      headers.Add("X-Load-Balancing-Endpoint-Weight", std::to_string(count));
      writer->Reply(count > 0 && well ? 200 : 503, headers, std::move(body));
    };
    auto server =
        http::Server::Listen({.address = "0.0.0.0", .port = check.port, .worker_threads = 1}, handler);
    if (!server) {
      // Somebody else has the port; tried again at the next change.
      log::Warn("Cannot serve a health check port",
                {{"service", key}, {"port", check.port}, {"err", server.error()}});
      listeners_.erase(key);
      continue;
    }
    listener->server = std::move(*server);
    listener->thread = std::jthread([raw = listener->server.get()](std::stop_token stop) {
      (void)raw->Run(stop, std::chrono::milliseconds(0));
    });
  }
}

}  // namespace keelson::proxy
