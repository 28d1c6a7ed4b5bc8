#include "proxy/dns/zone/answer.h"

#include <algorithm>
#include <span>

#include "proxy/dns/zone/lookup.h"

namespace keelson::proxy::dns {
namespace {

constexpr int kMaxChain = 8;  // CNAMEs within the zone
constexpr uint32_t kVersionTtl = 28800, kAnyTtl = 8482;
constexpr std::string_view kSchemaVersion(
    "\x05"
    "1.1.0",
    6);
constexpr std::string_view kAnyHinfo(
    "\x07"
    "RFC8482"
    "\0",
    9);                                            // RFC 8482, 4.2
constexpr uint16_t kPriority = 0, kWeights = 100;  // of SRV records; the weights add up

// The records of one node of the zone.
class NodeWriter {
 public:
  NodeWriter(const Snapshot& zone, const Query& query, std::string_view owner, uint32_t turn,
             AnswerWriter& writer)
      : zone_(zone), query_(query), owner_(owner), turn_(turn), writer_(writer) {}

  void Write(const Node& node) {
    switch (node.kind) {
      case Node::kNone:
      case Node::kEmpty:
        return;
      case Node::kApex:
        return WriteApex();
      case Node::kNameServer:
        return WriteAddresses(zone_.own_ips);
      case Node::kVersion:
        if (query_.type == kTypeTxt) Add(kTypeTxt, kVersionTtl, kSchemaVersion);
        return;
      case Node::kPod:
        return WriteAddress(node.ip);
      case Node::kService:
        return WriteService(*node.service);
      case Node::kEndpoints:
        if (query_.type == kTypeSrv) return WriteEndpointServers(*node.service, node.endpoints, {}, {});
        for (const EndpointName& endpoint : node.endpoints) WriteAddress(endpoint.ip);
        return;
      case Node::kPort:
        return WritePort(node);
    }
  }

 private:
  bool AsksFor(const IpAddress& ip) const { return query_.type == (ip.is_v4() ? kTypeA : kTypeAaaa); }
  bool OwnsQuestion() const { return owner_.data() == query_.name_bytes.data(); }

  void Add(uint16_t type, uint32_t ttl, std::string_view rdata) {
    if (OwnsQuestion()) {
      writer_.AddAt(Section::kAnswer, AnswerWriter::kQuestionName, type, ttl, rdata);
    } else {
      writer_.Add(Section::kAnswer, owner_, type, ttl, rdata);
    }
  }

  void WriteAddress(const IpAddress& ip) {
    if (AsksFor(ip)) Add(query_.type, zone_.ttl, ip.bytes());
  }
  void WriteAddresses(const std::vector<IpAddress>& ips) {
    for (const IpAddress& ip : ips) WriteAddress(ip);
  }

  void WriteApex() {
    if (query_.type == kTypeSoa) Add(kTypeSoa, zone_.ttl, zone_.soa);
    if (query_.type != kTypeNs) return;
    writer_.Add(Section::kAnswer, owner_, kTypeNs, zone_.ttl, {}, zone_.ns, true);
    WriteExtra(zone_.ns, zone_.own_ips);
  }

  void WriteService(const ServiceRecords& service) {
    if (query_.type == kTypeSrv) return WriteServers(service, {}, {});
    if (query_.type != kTypeA && query_.type != kTypeAaaa) return;
    const std::string& records = query_.type == kTypeA ? service.a : service.aaaa;
    size_t size = query_.type == kTypeA ? 16 : 28;
    if (records.empty()) return;
    size_t first = turn_ % (records.size() / size) * size;
    std::string_view all = records;
    if (OwnsQuestion()) {
      writer_.AddRecords(Section::kAnswer, all.substr(first), size);
      writer_.AddRecords(Section::kAnswer, all.substr(0, first), size);
      return;
    }
    size_t address = query_.type == kTypeA ? 4 : 16;
    for (size_t i = 0; i < all.size(); i += size) {
      size_t at = (first + i) % all.size() + size - address;
      Add(query_.type, zone_.ttl, all.substr(at, address));
    }
  }

  void WritePort(const Node& node) {
    const ServiceRecords& service = *node.service;
    if (query_.type == kTypeSrv) return WriteServers(service, node.port, node.protocol);
    if (!service.cluster_ips.empty()) return WriteAddresses(service.cluster_ips);
    for (const EndpointName& endpoint : service.endpoints) {
      const auto& ports = service.ports[endpoint.ports];
      bool has = std::any_of(ports.begin(), ports.end(),
                             [&](const PortName& port) { return Matches(port, node.port, node.protocol); });
      if (has) WriteAddress(endpoint.ip);
    }
  }

  void WriteServers(const ServiceRecords& service, std::string_view name, std::string_view protocol) {
    if (service.cluster_ips.empty()) return WriteEndpointServers(service, service.endpoints, name, protocol);
    Server server{service.key, {}};
    for (const PortName& port : service.ports[0]) {
      if (Matches(port, name, protocol)) server.ports.push_back(port.number);
    }
    WriteServers({std::move(server)});
    if (writer_.count(Section::kAnswer) > 0) WriteExtra(service.key, service.cluster_ips);
  }

  struct Server {
    std::string_view target;
    std::vector<uint16_t> ports;
  };

  // Endpoints of both families under one name are one server.
  void WriteEndpointServers(const ServiceRecords& service, std::span<const EndpointName> endpoints,
                            std::string_view name, std::string_view protocol) {
    std::vector<Server> servers;
    for (const EndpointName& endpoint : endpoints) {
      if (servers.empty() || servers.back().target != endpoint.name) servers.push_back({endpoint.name, {}});
      std::vector<uint16_t>& ports = servers.back().ports;
      for (const PortName& port : service.ports[endpoint.ports]) {
        bool known = std::find(ports.begin(), ports.end(), port.number) != ports.end();
        if (!known && Matches(port, name, protocol)) ports.push_back(port.number);
      }
    }
    WriteServers(servers);
    for (const EndpointName& endpoint : endpoints) {
      const IpAddress ip = endpoint.ip;
      if (writer_.truncated()) return;
      writer_.Add(Section::kAdditional, endpoint.name, ip.is_v4() ? kTypeA : kTypeAaaa, zone_.ttl,
                  ip.bytes());
    }
  }

  void WriteServers(const std::vector<Server>& servers) {
    size_t count = 0;
    for (const Server& server : servers) count += server.ports.size();
    if (count == 0) return;
    uint16_t weight = static_cast<uint16_t>(std::max<size_t>(1, kWeights / count));
    for (const Server& server : servers) {
      for (uint16_t port : server.ports) {
        char rdata[6];
        Set16(rdata, kPriority);
        Set16(rdata + 2, weight);
        Set16(rdata + 4, port);
        if (!writer_.Add(Section::kAnswer, owner_, kTypeSrv, zone_.ttl, {rdata, sizeof rdata},
                         server.target)) {
          return;
        }
      }
    }
  }

  void WriteExtra(std::string_view name, const std::vector<IpAddress>& ips) {
    for (const IpAddress& ip : ips) {
      writer_.Add(Section::kAdditional, name, ip.is_v4() ? kTypeA : kTypeAaaa, zone_.ttl, ip.bytes());
    }
  }

  const Snapshot& zone_;
  const Query& query_;
  const std::string_view owner_;
  const uint32_t turn_;
  AnswerWriter& writer_;
};

ZoneAnswer AnswerReverse(const Snapshot& zone, const Query& query, AnswerWriter& writer) {
  IpAddress ip;
  if (!ReverseAddress(query.name(), ip)) return {ZoneAnswer::kNotMine};
  if (!zone.known) return {ZoneAnswer::kAnswered, Rcode::kServFail};
  const PointerRecords* found = zone.pointers.Find(ip.bytes());
  if (!found) return {ZoneAnswer::kNotMine};
  if (query.type == kTypePtr) {
    for (const Name& name : found->answered()) {
      writer.AddAt(Section::kAnswer, AnswerWriter::kQuestionName, kTypePtr, zone.ttl, name);
    }
  } else {
    // What is known here is this name alone, not the zone around it.
    writer.AddAt(Section::kAuthority, AnswerWriter::kQuestionName, kTypeSoa, zone.ttl, zone.soa);
  }
  return {};
}

}  // namespace

ZoneAnswer AnswerFromZone(const Snapshot& zone, const Query& query, uint32_t turn, AnswerWriter& writer) {
  if (query.type == kTypeAny) {
    writer.AddAt(Section::kAnswer, AnswerWriter::kQuestionName, kTypeHinfo, kAnyTtl, kAnyHinfo);
    return {};
  }
  std::string_view name = query.name();
  if (!EndsWith(name, zone.zone)) return AnswerReverse(zone, query, writer);
  if (!zone.known) return {ZoneAnswer::kAnswered, Rcode::kServFail};
  for (int i = 0; i < kMaxChain; ++i) {
    Node node = FindNode(zone, name);
    bool alias = node.kind == Node::kService && !node.service->external.empty();
    if (!alias) {
      uint16_t before = writer.count(Section::kAnswer);
      NodeWriter(zone, query, name, turn, writer).Write(node);
      if (writer.count(Section::kAnswer) == before && !writer.truncated()) {
        writer.AddAt(Section::kAuthority, writer.SuffixOffset(zone.zone), kTypeSoa, zone.ttl, zone.soa);
      }
      return {ZoneAnswer::kAnswered, node.kind == Node::kNone ? Rcode::kNxDomain : Rcode::kNoError};
    }
    const Name& target = node.service->external;
    writer.Add(Section::kAnswer, name, kTypeCname, zone.ttl, {}, target, true);
    if (query.type == kTypeCname) return {};
    name = target;
    if (!EndsWith(name, zone.zone)) return {ZoneAnswer::kChase, Rcode::kNoError, target};
  }
  writer.Clear();
  return {ZoneAnswer::kAnswered, Rcode::kServFail};
}

}  // namespace keelson::proxy::dns
