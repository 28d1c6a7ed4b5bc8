#include "cni/agent/wireguard.h"

#include <sys/random.h>

#include <algorithm>
#include <set>

#include "lib/base/base64.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/netlink/addr.h"

namespace keelson::cni::agent {
namespace {

constexpr size_t kKeyBytes = 32;

}  // namespace

netlink::WireguardChange CompareWireguard(const std::vector<netlink::WireguardPeer>& found, const Plan& plan,
                                          uint16_t port) {
  netlink::WireguardChange out;
  std::set<std::string> wanted;
  for (const PeerPlan& peer : plan.peers) {
    Result<std::string> key = DecodeBase64(peer.wireguard_key);
    if (!peer.address || !key || key->size() != kKeyBytes || !wanted.insert(*key).second) continue;
    netlink::WireguardPeer made{*key, *peer.address, port, peer.pod_cidrs};
    std::sort(made.allowed.begin(), made.allowed.end());
    if (std::find(found.begin(), found.end(), made) == found.end()) out.set.push_back(std::move(made));
  }
  for (const netlink::WireguardPeer& peer : found) {
    if (!wanted.contains(peer.public_key)) out.removed.push_back(peer.public_key);
  }
  return out;
}

Result<std::unique_ptr<Wireguard>> Wireguard::Open(const Config& config, Publish publish) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket route, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket generic, netlink::Socket::OpenGeneric());
  std::unique_ptr<Wireguard> out(
      new Wireguard(config, std::move(publish), std::move(route), std::move(generic)));
  // Fail at start, instead of at every sync: a kernel without WireGuard will not get it.
  Result<netlink::Link> link = netlink::GetLink(out->route_, config.wireguard_device);
  if (!link) {
    KEELSON_RETURN_IF_ERROR(netlink::CreateWireguard(out->route_, config.wireguard_device, 0));
  } else if (link->kind != "wireguard") {
    return Error(Code::kAlreadyExists, "link " + link->name + " exists and is no WireGuard device");
  }
  return out;
}

Result<std::string> Wireguard::PrivateKey() const {
  const std::string dir = config_.data_dir + "/.kube-cni", path = dir + "/wireguard.key";
  if (Result<std::string> text = ReadFile(path)) {
    Result<std::string> key = DecodeBase64(std::string_view(*text).substr(0, text->find('\n')));
    if (key && key->size() == kKeyBytes) return key;
    return Error(Code::kInvalid, path + " holds no key");
  } else if (!text.error().Is(Code::kNotFound)) {
    return text.error();
  }
  std::string key(kKeyBytes, '\0');
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
    return ErrnoError("getrandom");
  }
  // Clamp the scalar (RFC 7748).
  key[0] = static_cast<char>(key[0] & 0xf8);
  key[31] = static_cast<char>((key[31] & 0x7f) | 0x40);
  KEELSON_RETURN_IF_ERROR(MakeDirs(dir, 0700));
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(path, EncodeBase64(key) + "\n", 0600));
  return key;
}

Result<netlink::Link> Wireguard::EnsureDevice(const Plan& plan, int& changes) {
  Result<netlink::Link> link = netlink::GetLink(route_, config_.wireguard_device);
  if (!link) {
    KEELSON_RETURN_IF_ERROR(netlink::CreateWireguard(route_, config_.wireguard_device, plan.pod_mtu));
    ++changes;
    KEELSON_ASSIGN_OR_RETURN(link, netlink::GetLink(route_, config_.wireguard_device));
  }
  if (!link->up || link->mtu != plan.pod_mtu) {
    KEELSON_RETURN_IF_ERROR(netlink::ChangeLink(route_, link->index, {.up = true, .mtu = plan.pod_mtu}));
    ++changes;
  }
  for (const IpPrefix& cidr : plan.pod_cidrs) {
    Result<> added = netlink::AddAddress(route_, link->index, IpPrefix::Host(cidr.Network()));
    if (added) ++changes;
    if (!added && !added.error().Is(Code::kAlreadyExists)) return added.error();
  }
  return link;
}

Result<int> Wireguard::BeforeRoutes(const Plan& plan, const NodeMap& nodes, int& link) {
  int changes = 0;
  KEELSON_ASSIGN_OR_RETURN(netlink::Link device, EnsureDevice(plan, changes));
  link = device.index;
  KEELSON_ASSIGN_OR_RETURN(netlink::WireguardDevice found,
                           netlink::GetWireguard(generic_, config_.wireguard_device));
  netlink::WireguardChange change = CompareWireguard(found.peers, plan, config_.wireguard_port);
  if (found.port != config_.wireguard_port) change.port = config_.wireguard_port;
  if (found.public_key.empty()) {
    KEELSON_ASSIGN_OR_RETURN(change.private_key, PrivateKey());
  }
  if (change.private_key || change.port || !change.set.empty() || !change.removed.empty()) {
    KEELSON_RETURN_IF_ERROR(netlink::ChangeWireguard(generic_, config_.wireguard_device, change));
    changes += static_cast<int>(1 + change.set.size() + change.removed.size());
  }
  if (found.public_key.empty()) {
    KEELSON_ASSIGN_OR_RETURN(found, netlink::GetWireguard(generic_, config_.wireguard_device));
  }
  std::string key = EncodeBase64(found.public_key);
  if (nodes.at(config_.node_name).wireguard_key != key) {
    KEELSON_RETURN_IF_ERROR(publish_(key));
    log::Info("WireGuard key published", {{"key", key}});
  }
  return changes;
}

}  // namespace keelson::cni::agent
