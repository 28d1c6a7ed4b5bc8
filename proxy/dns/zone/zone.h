// The cluster's zone from Services and EndpointSlices, after the Kubernetes DNS specification (schema 1.1.0) and, for
// details that it leaves open, CoreDNS's kubernetes plugin:
//
//   SERVICE.NS.svc.ZONE               A, AAAA: cluster IPs, or a headless Service's ready endpoints;
//                                     SRV: its ports
//   HOST.SERVICE.NS.svc.ZONE          A, AAAA, SRV of one endpoint: its hostname, or its address with dashes
//   _PORT._PROTO.SERVICE.NS.svc.ZONE  SRV, A, AAAA
//   A-B-C-D.NS.pod.ZONE               A, AAAA: what the name says ("pods insecure")
//   ADDRESS.in-addr.arpa, .ip6.arpa   PTR of cluster IPs and of endpoints that have a hostname
//   ZONE, ns.dns.ZONE, dns-version.ZONE   SOA and NS, A and AAAA, TXT
//
// Pure: objects in, snapshots out. A change replaces the records of its Service alone. A Service's endpoints
// count when their `ready` condition is absent or true; the EndpointSlice controller sets it for
// publishNotReadyAddresses. A ClusterIP Service's endpoints have names only where they carry a hostname.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/ip.h"
#include "proxy/dns/message/name.h"
#include "proxy/dns/zone/shared_table.h"

namespace keelson::api::core::v1 {
class Service;
}
namespace keelson::api::discovery::v1 {
class EndpointSlice;
}

namespace keelson::proxy::dns {

struct PortName {
  std::string name, protocol;  // lower case: "https", "tcp"
  uint16_t number = 0;
  auto operator<=>(const PortName&) const = default;
};

struct EndpointName {
  Name name;
  IpAddress ip;
  uint16_t ports = 0;  // index into ServiceRecords::ports
  auto operator<=>(const EndpointName&) const = default;
};

struct ServiceRecords {
  Name key;                            // the Service's own name
  std::string a, aaaa;                 // its records, owned by the question's name (RecordOf())
  std::vector<IpAddress> cluster_ips;  // none: headless or ExternalName
  std::vector<std::vector<PortName>>
      ports;                            // of the Service, or one list for each of a headless one's slices
  std::vector<EndpointName> endpoints;  // sorted
  Name external;                        // target of the CNAME; empty: none
};

struct PointerRecords {
  std::string key;          // the address's bytes
  std::vector<Name> names;  // of Services that have it as a cluster IP, then of endpoints; sorted each
  size_t cluster_ips = 0;   // the number of names that are Services'
  // A cluster IP's name wins over those of endpoints.
  std::span<const Name> answered() const { return {names.data(), cluster_ips > 0 ? 1 : names.size()}; }
};

// The immutable zone that readers use.
struct Snapshot {
  bool known = true;                      // else names of the zone can neither be answered nor denied
  Name zone, svc, pod, dns, ns, version;  // ZONE and the names in it that are not Services'
  uint32_t ttl = 0;
  std::string soa;                 // the SOA record's data
  std::vector<IpAddress> own_ips;  // of ns.dns.ZONE
  SharedTable<ServiceRecords> services;
  SharedTable<PointerRecords> pointers;
  std::shared_ptr<const std::set<std::string, std::less<>>> namespaces;  // those with a Service
};

struct ZoneOptions {
  std::string domain = "cluster.local";
  uint32_t ttl = 5;
  std::vector<IpAddress> own_ips;  // addresses of the server
  uint32_t serial = 1;             // of the first snapshot
};

// Not thread safe.
class Zone {
 public:
  static Result<Zone> Create(ZoneOptions options);

  // `key` is namespace/name; null: deleted.
  void UpdateService(const std::string& key, const api::core::v1::Service* service);
  void UpdateSlice(const std::string& key, const api::discovery::v1::EndpointSlice* slice);

  // The snapshot before the cluster is known.
  std::shared_ptr<const Snapshot> Unknown() const;
  // The zone with all changes so far; null when there was none since the last one (the first is never null).
  std::shared_ptr<const Snapshot> Commit();

 private:
  // The facts of one namespace/name, packed (records.h) since there is one for each Service.
  struct Known {
    std::optional<std::string> service;
    std::vector<std::pair<const std::string*, std::string>> slices;  // by slice key, which lies in slices_
    std::vector<IpAddress> pointed;                                  // addresses that have PTR records of it
    bool empty() const { return !service && slices.empty() && pointed.empty(); }
  };
  using Pointers = std::map<IpAddress, std::vector<Name>>;

  explicit Zone(ZoneOptions options) : options_(std::move(options)) {}
  void ForgetSlice(const std::string& key);
  void Rebuild(const std::string& key);
  std::shared_ptr<const ServiceRecords> Records(const Name& name, const Known& known) const;
  void AddEndpoints(const Known& known, bool headless, ServiceRecords& out) const;
  void SetPointers(const Name& name, Known& known, const Pointers& pointers);
  void RebuildPointer(const IpAddress& ip, const Name& service, const std::vector<Name>& names);
  void RebuildNamespaces();
  std::string SoaData() const;

  ZoneOptions options_;
  Snapshot next_;
  bool committed_ = false;
  std::unordered_map<std::string, Known> known_;
  std::unordered_map<std::string, std::string_view> slices_;  // slice key -> key in known_
  std::map<std::string, size_t> namespaces_;                  // Services with records in each
  bool namespaces_changed_ = true;
  std::set<std::string> changed_;
};

}  // namespace keelson::proxy::dns
