#include "controlplane/apiserver/peers/peer_directory.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/peers/peer_metrics.h"
#include "controlplane/apiserver/request/user.h"
#include "lib/api/codec/codec.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {
namespace {

constexpr std::chrono::seconds kPeriod{1}, kPatience{5};
constexpr std::chrono::milliseconds kFirstDelay{500}, kLastDelay{60000};
constexpr size_t kMaxDocument = 16u << 20;
// What the peer serves itself; servers before 1.36 know the second form.
constexpr const char* kAccept =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,"
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// Discovery is for all users that are known.
const User& AskingUser() {
  static const User user = {
      std::string(kUserApiServer), std::string(kUserApiServer), {std::string(kGroupAuthenticated)}, {}};
  return user;
}

}  // namespace

PeerDirectory::PeerDirectory(Sources sources, PeerClients& clients, Clock& clock)
    : sources_(std::move(sources)), clients_(clients), clock_(clock) {}

Result<discoveryapi::APIGroupDiscoveryList> PeerDirectory::Read(const std::string& address,
                                                                const std::string& path,
                                                                std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const std::shared_ptr<http::Client> client, clients_.At(address));
  http::ClientRequest request;
  request.target = path;
  KEELSON_ASSIGN_OR_RETURN(request.headers, IdentityHeaders(AskingUser()));
  request.headers.Add("Accept", kAccept);
  request.headers.Add(kPeerProxiedHeader, "true");
  request.max_response_body = kMaxDocument;
  const Result<http::ClientResponse> response = client->Do(request, kPatience, std::move(stop));
  if (!response) {
    clients_.Forget(address);
    return response.error();
  }
  CountRerouted(response->status, nullptr);
  if (response->status != 200) {
    return Error(Code::kUnavailable,
                 fmt::format("discovery request failed with status: {}", response->status));
  }
  discoveryapi::APIGroupDiscoveryList out;
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(response->body, out));
  return out;
}

Result<PeerDirectory::Peer> PeerDirectory::Ask(const std::string& address, std::stop_token stop) {
  Peer out;
  for (const char* path : {"/api", "/apis"}) {
    KEELSON_ASSIGN_OR_RETURN(const discoveryapi::APIGroupDiscoveryList list, Read(address, path, stop));
    for (const discoveryapi::APIGroupDiscovery& group : list.items()) {
      const std::string& name = group.metadata().name();
      discoveryapi::APIGroupDiscovery kept;
      *kept.mutable_metadata() = group.metadata();
      for (const discoveryapi::APIVersionDiscovery& version : group.versions()) {
        if (sources_.is_custom(name, version.version())) continue;
        for (const auto& resource : version.resources()) {
          out.resources.emplace(name, version.version(), resource.resource());
        }
        *kept.add_versions() = version;
      }
      if (!name.empty() && kept.versions_size() > 0) *out.groups.add_items() = std::move(kept);
    }
  }
  return out;
}

void PeerDirectory::Look(std::stop_token stop) {
  std::map<std::string, std::string> holders = sources_.holders();
  holders.erase(sources_.own);
  const std::shared_ptr<const Peers> before = peers_.load();
  Peers now;
  std::map<std::string, std::string> unknown;
  for (const auto& [name, holder] : holders) {
    if (const auto known = before->find(name); known != before->end() && known->second->holder == holder) {
      now.insert(*known);
    } else if (const auto failed = failures_.find(name);
               failed == failures_.end() || failed->second.again <= clock_.SteadyNow()) {
      unknown.emplace(name, holder);
    }
  }
  std::erase_if(failures_, [&](const auto& one) { return !holders.contains(one.first); });
  Result<std::map<std::string, std::string>> addresses = std::map<std::string, std::string>();
  if (!unknown.empty()) addresses = sources_.addresses(stop);
  for (const auto& [name, holder] : unknown) {
    const auto address = addresses ? addresses->find(name) : decltype(addresses->begin())();
    const bool placed = addresses && address != addresses->end();
    Result<Peer> peer = placed
                            ? Ask(address->second, stop)
                            : Result<Peer>(addresses ? Error(Code::kUnavailable, "its address is not known")
                                                     : addresses.error());
    if (stop.stop_requested()) return;
    if (peer) {
      log::Info("Another API server has said what it serves",
                {{"server", name}, {"resources", std::to_string(peer->resources.size())}});
      failures_.erase(name);
      peer->holder = holder;
      now[name] = std::make_shared<const Peer>(std::move(*peer));
      continue;
    }
    CountPeerSyncError(placed ? PeerSyncError::kFetch : PeerSyncError::kHostPort);
    Failure& failure = failures_[name];
    if (failure.delay.count() == 0) {
      log::Warn("Cannot learn what another API server serves", {{"server", name}, {"err", peer.error()}});
    }
    failure.delay = std::clamp(failure.delay * 2, kFirstDelay, kLastDelay);
    failure.again = clock_.SteadyNow() + failure.delay;
  }
  if (now != *before) peers_.store(std::make_shared<const Peers>(std::move(now)));
}

void PeerDirectory::Run(std::stop_token stop) {
  Mutex mutex;
  CondVar never;
  while (!stop.stop_requested()) {
    Look(stop);
    MutexLock lock(mutex);
    never.wait_for(mutex, stop, kPeriod, [] { return false; });
  }
}

std::vector<std::string> PeerDirectory::ServersOf(const std::string& group, const std::string& version,
                                                  const std::string& resource) const {
  const auto wanted = std::make_tuple(group, version, resource);
  std::vector<std::string> out;
  const std::shared_ptr<const Peers> peers = peers_.load();
  for (const auto& [name, peer] : *peers) {
    if (peer->resources.contains(wanted)) out.push_back(name);
  }
  return out;
}

Result<std::vector<std::string>> PeerDirectory::AddressesOf(const std::vector<std::string>& names,
                                                            std::stop_token stop) const {
  KEELSON_ASSIGN_OR_RETURN(const auto addresses, sources_.addresses(std::move(stop)));
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (const auto found = addresses.find(name); found != addresses.end()) out.push_back(found->second);
  }
  return out;
}

}  // namespace keelson::apiserver
