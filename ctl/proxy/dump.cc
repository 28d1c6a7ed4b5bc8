#include "ctl/proxy/dump.h"

#include <boost/json.hpp>
#include <map>
#include <utility>

#include "ctl/output.h"
#include "lib/dataplane/nftables_elements.h"
#include "lib/dataplane/nftables_sets.h"

namespace keelson::ctl {
namespace {

namespace json = boost::json;

class TableReader {
 public:
  TableReader(const nft::Ruleset& table, const std::string& mode)
      : table_(table), mode_(mode), v4_(table.table.family == nft::Family::kIpv4) {}

  std::vector<DumpedService> Run() {
    Endpoints(dataplane::kEndpoints, false);
    Endpoints(dataplane::kNodePortEndpoints, true);
    Verdicts(dataplane::kRejectServices, false, "refuses");
    Verdicts(dataplane::kDropServices, false, "drops");
    Verdicts(dataplane::kRejectNodePorts, true, "refuses");
    Verdicts(dataplane::kDropNodePorts, true, "drops");
    std::vector<DumpedService> out;
    for (auto& [key, service] : services_) out.push_back(std::move(service));
    return out;
  }

 private:
  template <typename Each>
  void ForEach(dataplane::SetId id, bool node_port, Each each) {
    auto found = table_.sets.find(dataplane::SetOf(id, v4_).name);
    if (found == table_.sets.end()) return;
    std::map<std::string, const nft::Element*> sorted;  // as slots are numbered
    for (const auto& [key, element] : found->second.elements) sorted[key] = &element;
    for (const auto& [key, element] : sorted) each(dataplane::DecodeElement(key, v4_, node_port), *element);
  }

  DumpedService& At(const dataplane::ServiceAddress& service, const std::string& scope) {
    const auto& [ip, protocol, port] = service;
    DumpedService& out = services_[{service, scope}];
    out.mode = mode_;
    out.scope = scope;
    out.ip = ip;
    out.protocol = protocol;
    out.port = port;
    return out;
  }

  void Endpoints(dataplane::SetId set, bool node_port) {
    ForEach(set, node_port, [&](const dataplane::DecodedElement& key, const nft::Element& element) {
      // Where IPVS translates, these are picked for pods and the node only.
      const std::string scope = key.slot >= dataplane::kFirstLocalSlot ? "outside"
                                : mode_ == "ipvs"                      ? "pods and node"
                                                                       : "";
      const dataplane::EndpointAddress endpoint = dataplane::DecodeEndpointData(element.data, v4_);
      At(key.service, scope).backends.push_back({.ip = endpoint.ip, .port = endpoint.port});
    });
  }

  void Verdicts(dataplane::SetId set, bool node_port, const std::string& verdict) {
    ForEach(set, node_port, [&](const dataplane::DecodedElement& key, const nft::Element&) {
      // Pods and the node may be served all the same.
      const bool others =
          services_.contains({key.service, ""}) || services_.contains({key.service, "pods and node"});
      At(key.service, others ? "outside" : "").verdict = verdict;
    });
  }

  const nft::Ruleset& table_;
  const std::string mode_;
  const bool v4_;
  std::map<std::pair<dataplane::ServiceAddress, std::string>, DumpedService> services_;
};

std::string BackendText(const DumpedBackend& backend) {
  std::string out = AddressText(backend.ip, backend.port);
  if (backend.weight) {
    out += *backend.weight == 0 ? " (drains, " : " (";
    out += std::to_string(backend.connections) + " open)";
  }
  return out;
}

}  // namespace

std::vector<DumpedService> DumpTable(const nft::Ruleset& table, const std::string& mode) {
  return TableReader(table, mode).Run();
}

DumpedService DumpServer(const netlink::FoundServer& server,
                         const std::vector<netlink::FoundDestination>& destinations) {
  const netlink::ServerAddress& at = server.server.address;
  DumpedService out;
  out.mode = "ipvs";
  out.protocol = at.protocol;
  out.ip = at.ip;
  out.port = at.port;
  for (const netlink::FoundDestination& found : destinations) {
    out.backends.push_back({.ip = found.destination.ip,
                            .port = found.destination.port,
                            .weight = found.destination.weight,
                            .connections = found.active});
  }
  return out;
}

json::value ToDocument(const Dump& dump) {
  json::array out;
  for (const DumpedService& service : dump.services) {
    json::object one = {{"mode", service.mode}};
    if (service.protocol != 0) one["protocol"] = ProtocolName(service.protocol);
    if (service.ip) one["address"] = service.ip->ToString();
    if (service.protocol != 0) one["port"] = service.port;
    if (!service.scope.empty()) one["from"] = service.scope;
    one["verdict"] = service.verdict;
    json::array backends;
    for (const DumpedBackend& backend : service.backends) {
      json::object b = {{"address", backend.ip.ToString()}, {"port", backend.port}};
      if (backend.weight) {
        b["weight"] = *backend.weight;
        b["connections"] = backend.connections;
      }
      backends.push_back(std::move(b));
    }
    one["endpoints"] = std::move(backends);
    out.push_back(std::move(one));
  }
  json::object document = {{"services", std::move(out)}};
  json::array sockets, outside, problems;
  for (const EbpfMaps& maps : dump.sockets) sockets.push_back(SocketLbDocument(maps));
  for (const Problem& p : dump.problems) problems.push_back({{"reason", p.reason}, {"message", p.message}});
  if (!sockets.empty()) document["sockets"] = std::move(sockets);
  for (const EbpfMaps& maps : dump.sockets) outside.push_back(ExternalDocument(maps));
  if (!outside.empty()) document["outside"] = std::move(outside);
  document["problems"] = std::move(problems);
  return document;
}

std::string ToTable(const Dump& dump) {
  std::vector<std::vector<std::string>> rows = {{"MODE", "PROTOCOL", "ADDRESS", "FROM", "LEADS TO"}};
  for (const DumpedService& service : dump.services) {
    std::string to;
    for (const DumpedBackend& backend : service.backends) {
      to += (to.empty() ? "" : ", ") + BackendText(backend);
    }
    if (service.verdict != "serves") to = service.verdict;
    const bool others = service.protocol == 0;
    rows.push_back(
        {service.mode, others ? "*" : ProtocolName(service.protocol),
         others ? service.ip.value_or(IpAddress()).ToString() : AddressText(service.ip, service.port),
         service.scope.empty() ? "everywhere" : service.scope, to.empty() ? "nobody" : to});
  }
  std::string out = TextTable(rows) + SocketLbTable(dump.sockets) + ExternalTable(dump.sockets);
  for (const Problem& p : dump.problems) out += "PROBLEM " + p.reason + ": " + p.message + "\n";
  return out;
}

}  // namespace keelson::ctl
