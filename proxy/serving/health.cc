#include "proxy/serving/health.h"

#include <fmt/format.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "lib/base/log.h"
#include "proxy/serving/metrics.h"

namespace keelson::proxy {
namespace {

// As Go prints a time.
std::string GoTime(WallTime time) {
  std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  auto nanos =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count() % 1000000000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  std::string fraction = nanos == 0 ? "" : fmt::format(".{:09}", nanos);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return text + fraction + " +0000 UTC";
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
  return InTime();
}

bool Health::Healthy() const {
  MutexLock lock(mutex_);
  return InTime() && node_eligible_;
}

// A healthy proxy was last updated just now, whether or not there was anything to do.
std::string Health::Describe(bool live) const {
  MutexLock lock(mutex_);
  bool well = InTime() && (live || node_eligible_);
  std::string now = GoTime(clock_.Now());
  std::string updated = well ? now : last_synced_ ? GoTime(*last_synced_) : "0001-01-01 00:00:00 +0000 UTC";
  std::string eligible = live ? "" : fmt::format(R"(, "nodeEligible": {})", node_eligible_);
  return fmt::format(R"({{"lastUpdated": "{}","currentTime": "{}"{}}})", updated, now, eligible);
}

http::Handler Health::Handler() {
  return [this](std::shared_ptr<const http::ServerRequest> request,
                std::shared_ptr<http::ResponseWriter> writer) {
    bool live = request->path == "/livez";
    if (!live && request->path != "/healthz") {
      return writer->Reply(404, {{"Content-Type", "text/plain; charset=utf-8"}}, "404 page not found\n");
    }
    int code = (live ? Live() : Healthy()) ? 200 : 503;
    CountHealthAnswer(live, code);
    writer->Reply(code, kJson, Describe(live));
  };
}

std::string HealthCheckAnswer(const std::string& key, size_t local_endpoints, bool healthy) {
  auto slash = key.find('/');
  return fmt::format(R"({{
	"service": {{
		"namespace": "{}",
		"name": "{}"
	}},
	"localEndpoints": {},
	"serviceProxyHealthy": {}
}})",
                     key.substr(0, slash), key.substr(slash + 1), local_endpoints, healthy);
}

struct HealthCheckServers::Listener {
  uint16_t port = 0;
  std::shared_ptr<std::atomic<size_t>> local = std::make_shared<std::atomic<size_t>>(0);
  std::unique_ptr<http::Server> server;
  std::jthread thread;
};

HealthCheckServers::HealthCheckServers(const Health& health, std::string node_name, OnFailure on_failure)
    : health_(health), node_name_(std::move(node_name)), on_failure_(std::move(on_failure)) {}
HealthCheckServers::~HealthCheckServers() = default;

std::unique_ptr<HealthCheckServers::Listener> HealthCheckServers::Open(const std::string& key,
                                                                       const HealthCheckNodePort& check) {
  auto listener = std::make_unique<Listener>();
  listener->port = check.port;
  auto handler = [this, key, local = listener->local](std::shared_ptr<const http::ServerRequest>,
                                                      std::shared_ptr<http::ResponseWriter> writer) {
    size_t count = local->load();
    bool well = health_.Live();
    http::Headers headers = kJson;
    headers.Add("X-Load-Balancing-Endpoint-Weight", std::to_string(count));
    writer->Reply(count > 0 && well ? 200 : 503, headers, HealthCheckAnswer(key, count, well));
  };
  // "::" takes IPv4 too; but a machine may be without IPv6.
  auto listen = [&](const char* address) {
    return http::Server::Listen({.address = address, .port = check.port, .worker_threads = 1}, handler);
  };
  auto server = listen("::");
  if (!server) server = listen("0.0.0.0");
  if (!server) {
    std::string message = fmt::format("node {} failed to start healthcheck \"{}\" on port {}: {}", node_name_,
                                      key, check.port, server.error().message());
    log::Error("Failed to start healthcheck",
               {{"node", node_name_}, {"service", key}, {"port", check.port}, {"err", server.error()}});
    on_failure_(key, message);
    return nullptr;
  }
  listener->server = std::move(*server);
  listener->thread = std::jthread([raw = listener->server.get()](std::stop_token stop) {
    (void)raw->Run(stop, std::chrono::milliseconds(0));
  });
  return listener;
}

void HealthCheckServers::Sync(const std::map<std::string, HealthCheckNodePort>& wanted) {
  std::erase_if(listeners_, [&](const auto& entry) {
    auto still = wanted.find(entry.first);
    return still == wanted.end() || still->second.port != entry.second->port;
  });
  for (const auto& [key, check] : wanted) {
    auto found = listeners_.find(key);
    if (found == listeners_.end()) {
      std::unique_ptr<Listener> opened = Open(key, check);
      if (!opened) continue;
      found = listeners_.emplace(key, std::move(opened)).first;
    }
    found->second->local->store(check.local_ready);
  }
}

}  // namespace keelson::proxy
