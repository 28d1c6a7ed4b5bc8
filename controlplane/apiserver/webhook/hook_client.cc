#include "controlplane/apiserver/webhook/hook_client.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/webhook/call_errors.h"

namespace keelson::apiserver::webhook {
namespace {

constexpr size_t kMaxClients = 256;
constexpr size_t kMaxResponse = 8u << 20;
// A call's own time is usually over first.
constexpr std::chrono::seconds kConnectTimeout{30};

std::chrono::milliseconds TimeUntil(SteadyTime deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyTime::clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

}  // namespace

Result<std::shared_ptr<http::Client>> HookClient::ClientFor(const std::string& address,
                                                            const std::string& server_name,
                                                            const std::string& ca_bundle) {
  const std::string key = address + "\n" + server_name + "\n" + ca_bundle;
  {
    MutexLock lock(mutex_);
    if (auto found = clients_.find(key); found != clients_.end()) return found->second;
  }
  http::ClientOptions options;
  options.base_url = "https://" + address;
  options.tls.ca_pem = ca_bundle;
  options.tls.server_name = server_name;
  options.connect_timeout = kConnectTimeout;
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> made, http::Client::Create(std::move(options)));
  MutexLock lock(mutex_);
  if (clients_.size() >= kMaxClients) clients_.clear();
  return clients_.emplace(key, std::move(made)).first->second;
}

Result<HookClient::Target> HookClient::TargetOf(const Endpoint& endpoint) {
  std::string address = endpoint.host, server_name;
  if (endpoint.is_service) {
    std::string last;
    {
      MutexLock lock(mutex_);
      if (auto found = last_address_.find(endpoint.host); found != last_address_.end()) last = found->second;
    }
    Result<std::string> resolved =
        services_.Resolve(endpoint.service_ns, endpoint.service_name, endpoint.service_port, last);
    if (!resolved) {
      return Error(resolved.error().code(),
                   fmt::format("{}Post \"{}\": {}", prefix_, endpoint.url(), resolved.error().message()));
    }
    address = *resolved;
    server_name = endpoint.service_name + "." + endpoint.service_ns + ".svc";
    if (address != last) {
      MutexLock lock(mutex_);
      if (last_address_.size() >= kMaxClients) last_address_.clear();
      last_address_[endpoint.host] = address;
    }
  }
  Result<std::shared_ptr<http::Client>> client = ClientFor(address, server_name, endpoint.ca_bundle);
  if (!client) {
    return Error(Code::kInternal,
                 "could not get REST client: unable to load root certificates: " + client.error().message());
  }
  return Target{std::move(*client), std::move(address)};
}

HookCall HookClient::Start(const Endpoint& endpoint, std::string review, SteadyTime deadline) {
  HookCall call;
  call.deadline_ = deadline;
  call.prefix_ = prefix_;
  call.url_ = endpoint.url();
  Result<Target> target = TargetOf(endpoint);
  if (!target) {
    call.failure_ = target.error();
    return call;
  }
  http::ClientRequest request;
  request.method = "POST";
  request.target = endpoint.path;
  request.headers = {{"Host", endpoint.host},
                     {"Content-Type", "application/json"},
                     {"Accept", "application/json, */*"},
                     {"User-Agent", "kube-apiserver-admission"}};
  request.body = std::move(review);
  request.max_response_body = kMaxResponse;
  call.client_ = std::move(target->client);
  call.address_ = std::move(target->address);
  call.pending_ = call.client_->Start(request);
  return call;
}

Result<std::string> HookCall::Await() {
  if (failure_) return *failure_;
  Result<http::ClientResponse> response = pending_->Await(TimeUntil(deadline_));
  if (!response) {
    return Error(response.error().code(),
                 fmt::format("{}Post \"{}\": {}", prefix_, url_, CauseOf(response.error(), address_)));
  }
  if (response->status < 200 || response->status > 206) {
    return Error(CodeOf(response->status, ""), prefix_ + UnexpectedStatus(response->status, response->body));
  }
  return std::move(response->body);
}

}  // namespace keelson::apiserver::webhook
