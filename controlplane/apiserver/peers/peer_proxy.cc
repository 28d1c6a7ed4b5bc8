#include "controlplane/apiserver/peers/peer_proxy.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/apiserver/endpoints/forwarding.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/peers/peer_metrics.h"
#include "lib/base/log.h"
#include "lib/http/streaming/streaming.h"

namespace keelson::apiserver {
namespace {

// Requests that wait for peers, streams apart.
constexpr int kMaxWaiting = 1000;

size_t RandomBelow(size_t limit) {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
}

}  // namespace

PeerProxy::PeerProxy(const PeerDirectory& directory, PeerClients& clients, IdentityHeaderNames headers)
    : directory_(directory), clients_(clients), outgoing_(std::move(headers)) {}

PeerProxy::~PeerProxy() { completions_->Close(); }

bool PeerProxy::Wants(const Context& context) const {
  const RequestInfo& info = context.info;
  return info.is_resource && context.request->headers.Get(kPeerProxiedHeader) != "true" &&
         !directory_.ServersOf(info.group, info.version, info.resource).empty();
}

Result<std::string> PeerProxy::AddressFor(const RequestInfo& info) const {
  KEELSON_ASSIGN_OR_RETURN(
      const std::vector<std::string> addresses,
      directory_.AddressesOf(directory_.ServersOf(info.group, info.version, info.resource), {}));
  if (addresses.empty()) return Error(Code::kUnavailable, "no peer that serves the resource has an address");
  return addresses[RandomBelow(addresses.size())];
}

void PeerProxy::Handle(std::shared_ptr<Context> context, std::function<void()> done) {
  auto refuse = [&](const Error& error) {
    ReplyError(*context, error);
    done();
  };
  const RequestInfo& info = context->info;
  const Result<std::string> address = AddressFor(info);
  if (!address) {
    CountPeerProxyError(PeerProxyError::kEndpointResolution, info);
    log::Warn("Cannot find a peer for a request", {{"path", info.path}, {"err", address.error()}});
    return refuse(
        Error(Code::kUnavailable, "Error getting ip and port info of the remote server while proxying"));
  }
  Result<http::ClientRequest> request = outgoing_.Make(*context);
  if (!request) return refuse(request.error());
  request->headers.Set(kPeerProxiedHeader, "true");
  Result<std::shared_ptr<http::Client>> client = clients_.At(*address);
  if (!client) return refuse(Error(Code::kInternal, client.error().message()));
  Forwarding::Options options;
  options.upgrade = http::IsUpgradeRequest(*context->request);
  options.status_errors = true;
  options.on_silence = [this, completions = completions_, address = *address, info] {
    CountPeerProxyError(PeerProxyError::kTransport, info);
    completions->Run([&] { clients_.Forget(address); });
  };
  std::shared_ptr<void> seat;
  if (!options.upgrade && !audit::IsLongRunning(info)) {
    if (waiting_->fetch_add(1) >= kMaxWaiting) {
      waiting_->fetch_sub(1);
      return refuse(Error(Code::kTooManyRequests, "too many requests wait for other API servers"));
    }
    seat = std::shared_ptr<void>(waiting_.get(), [waiting = waiting_](void*) { waiting->fetch_sub(1); });
    if (context->deadline != SteadyTime::max()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(context->deadline - SteadyTime::clock::now());
      options.timeout = std::max(left, std::chrono::milliseconds(1));
    }
  }
  options.done = [completions = completions_, done = std::move(done), seat, context] {
    CountRerouted(context->status, &context->info);
    completions->Run(done);
  };
  std::make_shared<Forwarding>(std::move(context), std::move(*client), std::move(options))
      ->Start(std::move(*request));
}

}  // namespace keelson::apiserver
