#include "controlplane/apiserver/aggregator/proxy.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/apiserver/endpoints/forwarding.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "lib/base/log.h"
#include "lib/http/streaming/streaming.h"

namespace keelson::apiserver {
namespace {

// Requests of one APIService that wait, streams apart.
constexpr int kMaxWaiting = 1000;
// Below it are the documents of group versions, under their paths.
constexpr std::string_view kOpenApi = "/openapi/v3";
constexpr int kUnavailable = 503, kTooMany = 429;

}  // namespace

AggregationProxy::AggregationProxy(const ApiServices& services, ExtensionClients& clients, Options options)
    : services_(services),
      clients_(clients),
      reject_redirects_(options.reject_redirects),
      outgoing_(std::move(options.headers)),
      completions_(std::make_shared<Completions>()) {}

AggregationProxy::~AggregationProxy() { completions_->Close(); }

ApiServicePtr AggregationProxy::Find(std::string_view path) const {
  if (path.starts_with(kOpenApi)) path.remove_prefix(kOpenApi.size());
  const auto [group, version] = GroupVersionOf(path);
  return services_.RemoteOf(group, version);
}

std::shared_ptr<void> AggregationProxy::Enter(const std::string& name) {
  std::shared_ptr<std::atomic<int>> count;
  {
    MutexLock lock(mutex_);
    auto& kept = waiting_[name];
    if (!kept) kept = std::make_shared<std::atomic<int>>(0);
    count = kept;
  }
  if (count->fetch_add(1) >= kMaxWaiting) {
    count->fetch_sub(1);
    return nullptr;
  }
  return std::shared_ptr<void>(count.get(), [count](void*) { count->fetch_sub(1); });
}

void AggregationProxy::Handle(std::shared_ptr<Context> context, const ApiServicePtr& service,
                              std::function<void()> done) {
  auto refuse = [&](int status, std::string_view message) {
    ReplyProxyError(*context, status, message);
    done();
  };
  if (!service->available) return refuse(kUnavailable, "service unavailable");
  Result<http::ClientRequest> request = outgoing_.Make(*context);
  if (!request) {
    if (!request.error().Is(Code::kUnavailable)) return refuse(500, request.error().message());
    return refuse(kUnavailable, fmt::format("error trying to reach service: {}", request.error().message()));
  }
  Result<ExtensionClients::Target> target = clients_.For(*service);
  if (!target) {
    if (target.error().Is(Code::kInternal)) return refuse(500, target.error().message());
    log::Warn("Cannot resolve the Service of an extension server",
              {{"apiservice", service->name}, {"err", target.error()}});
    return refuse(kUnavailable, "service unavailable");
  }
  Forwarding::Options options;
  options.upgrade = http::IsUpgradeRequest(*context->request);
  options.reject_redirects = reject_redirects_;
  options.on_silence = [this, completions = completions_, address = target->address] {
    completions->Run([&] { clients_.Forget(address); });
  };
  std::shared_ptr<void> seat;
  if (!options.upgrade && !audit::IsLongRunning(context->info)) {
    seat = Enter(service->name);
    if (!seat) return refuse(kTooMany, "Too many requests, please try again later.");
    if (context->deadline != SteadyTime::max()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(context->deadline - SteadyTime::clock::now());
      options.timeout = std::max(left, std::chrono::milliseconds(1));
    }
  }
  options.done = [completions = completions_, done = std::move(done), seat] { completions->Run(done); };
  std::make_shared<Forwarding>(std::move(context), std::move(target->client), std::move(options))
      ->Start(std::move(*request));
}

}  // namespace keelson::apiserver
