// The cluster's zone as Services and EndpointSlices make it, after the Kubernetes DNS specification (schema
// 1.1.0) and, where that leaves things open, CoreDNS's kubernetes plugin:
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
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/base/ip.h"
#include "proxy/dns/name.h"
#include "proxy/dns/shared_table.h"

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
  std::string key;  // the address's bytes
  std::vector<Name> names;
};

// What readers answer from; immutable.
struct Snapshot {
  bool known = true;                      // else nothing in the zone can be said, nor denied
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
  std::vector<IpAddress> own_ips;  // where the server answers
  uint32_t serial = 1;             // of the first snapshot
};

// Not thread safe.
class Zone {
 public:
  static Result<Zone> Create(ZoneOptions options);

  // `key` is namespace/name; null: deleted.
  void UpdateService(const std::string& key, const api::core::v1::Service* service);
  void UpdateSlice(const std::string& key, const api::discovery::v1::EndpointSlice* slice);

  // What is answered from until the cluster is known.
  std::shared_ptr<const Snapshot> Unknown() const;
  // The zone with all changes so far; null when there was none since the last one (the first is never null).
  std::shared_ptr<const Snapshot> Commit();

 private:
  struct Service {
    std::vector<IpAddress> cluster_ips;
    std::vector<PortName> ports;
    bool headless = false;
    Name external;
    bool operator==(const Service&) const = default;
  };
  struct SliceEndpoint {
    std::string hostname;
    IpAddress ip;
    bool operator==(const SliceEndpoint&) const = default;
  };
  struct Slice {
    std::vector<PortName> ports;
    std::vector<SliceEndpoint> endpoints;  // ready ones
    bool operator==(const Slice&) const = default;
  };

  explicit Zone(ZoneOptions options) : options_(std::move(options)) {}
  static Service Project(const api::core::v1::Service& service);
  static Slice Project(const api::discovery::v1::EndpointSlice& slice);
  void Rebuild(const std::string& key);
  std::shared_ptr<const ServiceRecords> Records(const std::string& key, const Service& service) const;
  void AddEndpoints(const std::string& key, bool headless, ServiceRecords& out) const;
  void SetPointers(const std::string& key, std::map<IpAddress, std::vector<Name>> pointers);
  void RebuildPointer(const IpAddress& ip);
  void RebuildNamespaces();
  std::string SoaData() const;

  ZoneOptions options_;
  Snapshot next_;
  bool committed_ = false;
  std::unordered_map<std::string, Service> services_;
  std::unordered_map<std::string, std::map<std::string, Slice>> slices_;  // service key -> slice key
  std::unordered_map<std::string, std::string> service_of_slice_;
  std::unordered_map<std::string, std::vector<IpAddress>> pointers_of_;  // service key -> addresses
  // Address -> service key -> names. A cluster IP's name wins over those of endpoints.
  struct Pointing {
    bool cluster_ip = false;
    std::vector<Name> names;
  };
  std::unordered_map<IpAddress, std::map<std::string, Pointing>> pointing_;
  std::map<std::string, size_t> namespaces_;  // Services with records in each
  bool namespaces_changed_ = true;
  std::set<std::string> changed_;
};

}  // namespace keelson::proxy::dns
