#include "controlplane/apiserver/aggregator/proxy.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/apiserver/endpoints/forwarding.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/request/audit_id.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/base/percent.h"
#include "lib/base/text.h"
#include "lib/http/streaming/streaming.h"
#include "lib/http/streaming/websocket.h"

namespace keelson::apiserver {
namespace {

// Requests of one APIService that wait, streams apart.
constexpr int kMaxWaiting = 1000;
// Below it are the documents of group versions, under their paths.
constexpr std::string_view kOpenApi = "/openapi/v3";
constexpr int kUnavailable = 503, kTooMany = 429;

// The path that was authorized, whatever its spelling in the request.
std::string EncodePath(std::string_view path) {
  std::string out;
  for (const std::string_view segment : Split(path, '/')) {
    if (!out.empty() || segment.data() != path.data()) out += '/';
    out += PercentEncode(segment);
  }
  return out;
}

std::string HostOf(const std::string& remote_address) {
  std::string host = remote_address.substr(0, remote_address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

AggregationProxy::AggregationProxy(const ApiServices& services, ExtensionClients& clients, Options options)
    : services_(services),
      clients_(clients),
      options_(std::move(options)),
      pseudonym_("keelson-" + api::NewUid()),
      completions_(std::make_shared<Completions>()) {}

AggregationProxy::~AggregationProxy() { completions_->Close(); }

ApiServicePtr AggregationProxy::Find(std::string_view path) const {
  if (path.starts_with(kOpenApi)) path.remove_prefix(kOpenApi.size());
  const auto [group, version] = GroupVersionOf(path);
  return services_.RemoteOf(group, version);
}

bool AggregationProxy::IsOwn(std::string_view header) const {
  if (IsIdentityHeader(header)) return true;
  for (const std::string& name : options_.identity_headers) {
    if (EqualsIgnoreCase(header, name)) return true;
  }
  for (const std::string& prefix : options_.identity_prefixes) {
    if (EqualsIgnoreCase(header.substr(0, prefix.size()), prefix)) return true;
  }
  return false;
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

Result<http::ClientRequest> AggregationProxy::Outgoing(const Context& context) const {
  const http::ServerRequest& request = *context.request;
  const bool upgrade = http::IsUpgradeRequest(request);
  http::ClientRequest out;
  out.method = request.method;
  out.target = EncodePath(request.path);
  if (!request.raw_query.empty()) out.target += "?" + request.raw_query;
  out.body = request.body;
  out.body_stream = request.body_stream;
  const std::string_view length = request.headers.Get("Content-Length");
  if (out.body_stream && !length.empty()) out.headers.Add("Content-Length", std::string(length));
  std::string via, forwarded;
  for (const auto& [name, value] : request.headers) {
    if (EqualsIgnoreCase(name, "Via")) {
      via += value + ", ";
    } else if (EqualsIgnoreCase(name, "X-Forwarded-For")) {
      forwarded += value + ", ";
    } else if (upgrade && EqualsIgnoreCase(name, "Upgrade")) {
      out.headers.Add(name, value);
    } else if (!IsHopHeader(name) && !IsOwn(name) && !EqualsIgnoreCase(name, "Host") &&
               !EqualsIgnoreCase(name, "Sec-WebSocket-Protocol") && !EqualsIgnoreCase(name, "Expect")) {
      out.headers.Add(name, value);
    }
  }
  if (via.find(pseudonym_) != std::string::npos) {
    return Error(Code::kUnavailable, "the request has come back to the server that passed it on");
  }
  if (upgrade) {
    out.headers.Add("Connection", "Upgrade");
    // Without the client's token, which may stand among the protocols.
    const std::vector<std::string> protocols = http::OfferedSubprotocols(request);
    if (!protocols.empty()) out.headers.Add("Sec-WebSocket-Protocol", Join(protocols, ", "));
  }
  out.headers.Add(
      "Via", fmt::format("{}{}.{} {}", via, request.http_major, request.http_major == 1 ? 1 : 0, pseudonym_));
  out.headers.Add("X-Forwarded-For", forwarded + HostOf(request.remote_address));
  out.headers.Set(std::string(kAuditId), context.audit_id);
  KEELSON_ASSIGN_OR_RETURN(const http::Headers identity, IdentityHeaders(context.user));
  for (const auto& [name, value] : identity) out.headers.Add(name, value);
  return out;
}

void AggregationProxy::Handle(std::shared_ptr<Context> context, const ApiServicePtr& service,
                              std::function<void()> done) {
  auto refuse = [&](int status, std::string_view message) {
    ReplyProxyError(*context, status, message);
    done();
  };
  if (!service->available) return refuse(kUnavailable, "service unavailable");
  Result<http::ClientRequest> request = Outgoing(*context);
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
  options.reject_redirects = options_.reject_redirects;
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
