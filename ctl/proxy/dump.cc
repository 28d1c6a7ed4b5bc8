#include "ctl/proxy/dump.h"

#include <boost/json.hpp>
#include <cstring>
#include <map>
#include <tuple>

#include "ctl/output.h"

namespace keelson::ctl {
namespace {

namespace json = boost::json;

// Slots of endpoints on this node, where there are two lists (proxy/nftables/chains.h).
constexpr uint32_t kLocalSlots = 0x10000;

// Reads a key or datum part by part, as nft::Key writes it.
class Reader {
 public:
  Reader(const std::string& bytes, bool v4) : bytes_(bytes), v4_(v4) {}
  IpAddress Ip() { return IpAddress::FromBytes(Take(v4_ ? 4 : 16)); }
  uint8_t Proto() { return static_cast<uint8_t>(Take(4)[0]); }
  uint16_t Port() {
    std::string_view part = Take(4);
    return static_cast<uint16_t>(static_cast<uint8_t>(part[0]) << 8 | static_cast<uint8_t>(part[1]));
  }
  uint32_t Mark() {
    uint32_t out = 0;
    std::memcpy(&out, Take(4).data(), sizeof out);
    return out;
  }

 private:
  std::string_view Take(size_t size) {
    if (at_ + size > bytes_.size()) return {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", size};
    at_ += size;
    return std::string_view(bytes_).substr(at_ - size, size);
  }
  const std::string& bytes_;
  const bool v4_;
  size_t at_ = 0;
};

class TableReader {
 public:
  TableReader(const nft::Ruleset& table, const std::string& mode)
      : table_(table), mode_(mode), v4_(table.table.family == nft::Family::kIpv4) {}

  std::vector<DumpedService> Run() {
    Endpoints("endpoints", false);
    Endpoints("nodeport-endpoints", true);
    Verdicts("reject-services", false, "refuses");
    Verdicts("drop-services", false, "drops");
    Verdicts("reject-nodeports", true, "refuses");
    Verdicts("drop-nodeports", true, "drops");
    std::vector<DumpedService> out;
    for (auto& [key, service] : services_) out.push_back(std::move(service));
    return out;
  }

 private:
  template <typename Each>
  void ForEach(const std::string& set, bool node_port, Each each) {
    auto found = table_.sets.find(set);
    if (found == table_.sets.end()) return;
    std::map<std::string, const nft::Element*> sorted;  // as slots are numbered
    for (const auto& [key, element] : found->second.elements) sorted[key] = &element;
    for (const auto& [key, element] : sorted) {
      Reader reader(key, v4_);
      std::optional<IpAddress> ip;
      if (!node_port) ip = reader.Ip();
      const uint8_t protocol = reader.Proto();
      const uint16_t port = reader.Port();
      each(ip, protocol, port, reader, *element);
    }
  }

  DumpedService& At(const std::optional<IpAddress>& ip, uint8_t protocol, uint16_t port,
                    const std::string& scope) {
    DumpedService& out = services_[{ip, protocol, port, scope}];
    out.mode = mode_;
    out.scope = scope;
    out.ip = ip;
    out.protocol = protocol;
    out.port = port;
    return out;
  }

  void Endpoints(const std::string& set, bool node_port) {
    ForEach(set, node_port,
            [&](const auto& ip, uint8_t protocol, uint16_t port, Reader& key, const nft::Element& e) {
              // Where IPVS translates, these are picked for pods and the node only.
              const std::string scope = key.Mark() >= kLocalSlots ? "outside"
                                        : mode_ == "ipvs"         ? "pods and node"
                                                                  : "";
              Reader datum(e.data, v4_);
              DumpedBackend backend;
              backend.ip = datum.Ip();
              backend.port = datum.Port();
              At(ip, protocol, port, scope).backends.push_back(backend);
            });
  }

  void Verdicts(const std::string& set, bool node_port, const std::string& verdict) {
    ForEach(set, node_port,
            [&](const auto& ip, uint8_t protocol, uint16_t port, Reader&, const nft::Element&) {
              // Pods and the node may be served all the same.
              const bool others = services_.contains({ip, protocol, port, ""}) ||
                                  services_.contains({ip, protocol, port, "pods and node"});
              At(ip, protocol, port, others ? "outside" : "").verdict = verdict;
            });
  }

  const nft::Ruleset& table_;
  const std::string mode_;
  const bool v4_;
  std::map<std::tuple<std::optional<IpAddress>, uint8_t, uint16_t, std::string>, DumpedService> services_;
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
  for (const SocketMaps& maps : dump.sockets) sockets.push_back(SocketsDocument(maps));
  for (const Problem& p : dump.problems) problems.push_back({{"reason", p.reason}, {"message", p.message}});
  if (!sockets.empty()) document["sockets"] = std::move(sockets);
  for (const SocketMaps& maps : dump.sockets) outside.push_back(OutsideDocument(maps));
  if (!outside.empty()) document["outside"] = std::move(outside);
  document["problems"] = std::move(problems);
  return document;
}

std::string ToTable(const Dump& dump) {
  std::vector<std::vector<std::string>> rows = {{"MODE", "PROTOCOL", "ADDRESS", "FROM", "LEADS TO"}};
  for (const DumpedService& service : dump.services) {
    std::string to;
    for (const DumpedBackend& backend : service.backends)
      to += (to.empty() ? "" : ", ") + BackendText(backend);
    if (service.verdict != "serves") to = service.verdict;
    const bool others = service.protocol == 0;
    rows.push_back(
        {service.mode, others ? "*" : ProtocolName(service.protocol),
         others ? service.ip.value_or(IpAddress()).ToString() : AddressText(service.ip, service.port),
         service.scope.empty() ? "everywhere" : service.scope, to.empty() ? "nobody" : to});
  }
  std::string out = TextTable(rows) + SocketsTable(dump.sockets) + OutsideTable(dump.sockets);
  for (const Problem& p : dump.problems) out += "PROBLEM " + p.reason + ": " + p.message + "\n";
  return out;
}

}  // namespace keelson::ctl
