#include "cni/keelson-policy/attachment.h"

#include "cni/lib/labelled_elements.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/netlink/conntrack.h"

namespace keelson::cni {
namespace {

constexpr int kAttempts = 20;

std::string AddressKey(const IpAddress& address) { return nft::Key().Ip(address).bytes(); }

std::string SourceKey(const std::string& port, const IpAddress& address) {
  return nft::Key().Ifname(port).Ip(address).bytes();
}

const nft::Element* Find(const nft::Ruleset& found, const nft::Set& set, const std::string& key) {
  auto there = found.sets.find(set.name);
  if (there == found.sets.end()) return nullptr;
  auto element = there->second.elements.find(key);
  return element == there->second.elements.end() ? nullptr : &element->second;
}

Result<> AddPort(nft::Kernel& kernel, const PodAttachment& attachment) {
  nft::Transaction t(dataplane::PolicyPortsTable());
  auto add = [&](const nft::Set& set, const std::string& key) {
    t.AddElements(set, {{.key = key, .comment = attachment.label}});
  };
  add(dataplane::PodPorts(), nft::Key().Ifname(attachment.port).bytes());
  add(dataplane::CheckedPorts(), nft::Key().Ifname(attachment.port).bytes());
  for (const IpAddress& address : attachment.addresses) {
    add(dataplane::PodSources(address.is_v4()), SourceKey(attachment.port, address));
  }
  return kernel.Apply(t);
}

// Deletes the address's element of `set` if it is there.
void Clear(nft::Transaction& t, const nft::Ruleset& found, const nft::Set& set, const IpAddress& address) {
  if (const nft::Element* element = Find(found, set, AddressKey(address))) t.DeleteElements(set, {*element});
}

// In one transaction, so that the agent never sees an address ready with another epoch.
Result<> TakeAddresses(nft::Kernel& kernel, const PodAttachment& attachment) {
  for (int attempt = 1;; ++attempt) {
    KEELSON_ASSIGN_OR_RETURN(auto found, kernel.ReadSets(dataplane::PolicyTable()));
    if (!found) return Error(Code::kNotFound, "there is no table inet keelson-policy");
    nft::Transaction t(dataplane::PolicyTable());
    for (const IpAddress& address : attachment.addresses) {
      Clear(t, *found, dataplane::ReadyPods(address.is_v4()), address);
      Clear(t, *found, dataplane::AttachedPods(address.is_v4()), address);
      t.CreateElements(dataplane::AttachedPods(address.is_v4()),
                       {{.key = AddressKey(address),
                         .data = nft::Key().Mark(attachment.epoch).bytes(),
                         .comment = attachment.uid}});
    }
    Result<> applied = kernel.Apply(t);
    if (applied) return {};
    // The agent has changed one of them first.
    bool again = applied.error().Is(Code::kNotFound) || applied.error().Is(Code::kAlreadyExists);
    if (!again || attempt == kAttempts) return applied.error();
  }
}

Result<> ForgetConnections(const std::vector<IpAddress>& addresses) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenNetfilter());
  for (const IpAddress& address : addresses) {
    KEELSON_ASSIGN_OR_RETURN(auto flows, netlink::ListFlowsOf(socket, address));
    for (const netlink::Flow& flow : flows) {
      KEELSON_ASSIGN_OR_RETURN(bool deleted, netlink::DeleteFlow(socket, flow));
      (void)deleted;
    }
  }
  return {};
}

}  // namespace

Result<> Attach(nft::Kernel& kernel, const PodAttachment& attachment) {
  KEELSON_RETURN_IF_ERROR(AddPort(kernel, attachment));
  KEELSON_RETURN_IF_ERROR(TakeAddresses(kernel, attachment));
  return ForgetConnections(attachment.addresses);
}

Outcome<> Detach(nft::Kernel& kernel, const std::function<bool(std::string_view label)>& unwanted) {
  KEELSON_ASSIGN_OR_RETURN(auto ports, kernel.ReadSets(dataplane::PolicyPortsTable()));
  if (!ports) return {};
  std::vector<IpAddress> addresses;
  std::vector<std::pair<nft::Set, nft::Element>> sources;
  for (bool v4 : {true, false}) {
    const nft::Set set = dataplane::PodSources(v4);
    auto found = ports->sets.find(set.name);
    if (found == ports->sets.end()) continue;
    for (const auto& [key, element] : found->second.elements) {
      if (element.comment.empty() || !unwanted(element.comment)) continue;
      addresses.push_back(
          IpAddress::FromBytes(std::string_view(key).substr(nft::SizeOf(nft::Type::kIfname))));
      sources.emplace_back(set, element);
    }
  }
  for (const IpAddress& address : addresses) {
    for (int attempt = 1;; ++attempt) {
      KEELSON_ASSIGN_OR_RETURN(auto found, kernel.ReadSets(dataplane::PolicyTable()));
      if (!found) break;
      nft::Transaction t(dataplane::PolicyTable());
      Clear(t, *found, dataplane::ReadyPods(address.is_v4()), address);
      Clear(t, *found, dataplane::AttachedPods(address.is_v4()), address);
      Result<> applied = kernel.Apply(t);
      if (applied) break;
      if (!applied.error().Is(Code::kNotFound) || attempt == kAttempts) return applied.error();
    }
  }
  // Last: a DEL that is repeated finds the addresses by them.
  for (const auto& [set, element] : sources) {
    nft::Transaction t(dataplane::PolicyPortsTable());
    t.DeleteElements(set, {element});
    Result<> applied = kernel.Apply(t);
    if (!applied && !applied.error().Is(Code::kNotFound)) return applied.error();
  }
  return {};
}

Outcome<> VerifyAttachment(nft::Kernel& kernel, const PodAttachment& attachment) {
  KEELSON_ASSIGN_OR_RETURN(auto ports, kernel.ReadSets(dataplane::PolicyPortsTable()));
  KEELSON_ASSIGN_OR_RETURN(auto pods, kernel.ReadSets(dataplane::PolicyTable()));
  if (!ports || !pods) return CniError{kCheckFailed, "the tables keelson-policy are missing", ""};
  bool port = Find(*ports, dataplane::PodPorts(), nft::Key().Ifname(attachment.port).bytes()) != nullptr;
  for (const IpAddress& address : attachment.addresses) {
    const nft::Element* attached = Find(*pods, dataplane::AttachedPods(address.is_v4()), AddressKey(address));
    bool source = Find(*ports, dataplane::PodSources(address.is_v4()), SourceKey(attachment.port, address));
    bool ready = Find(*pods, dataplane::ReadyPods(address.is_v4()), AddressKey(address));
    if (port && source && ready && attached && attached->comment == attachment.uid) continue;
    return CniError{kCheckFailed, "network policies of " + address.ToString() + " are not in place", ""};
  }
  return {};
}

}  // namespace keelson::cni
