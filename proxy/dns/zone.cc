#include "proxy/dns/zone.h"

#include <algorithm>

#include "proxy/dns/message.h"
#include "proxy/dns/zone_records.h"

namespace keelson::proxy::dns {
namespace {

// SOA timers as CoreDNS gives them; nobody transfers this zone.
constexpr uint32_t kRefresh = 7200, kRetry = 1800, kExpire = 86400;

Name NameOf(const std::string& key, const Name& svc) {
  size_t slash = key.find('/');
  return Join(key.substr(slash + 1), Join(key.substr(0, slash), svc));
}

}  // namespace

Result<Zone> Zone::Create(ZoneOptions options) {
  Zone out(std::move(options));
  ASSIGN_OR_RETURN(Name zone, ParseName(out.options_.domain));
  // SERVICE.NS.svc. and the port's labels must fit in front.
  if (zone.size() == 1 || zone.size() > kMaxNameSize / 2) {
    return Error(Code::kInvalid, "invalid cluster domain \"" + out.options_.domain + "\"");
  }
  Snapshot& next = out.next_;
  next.zone = zone;
  next.svc = Join("svc", zone);
  next.pod = Join("pod", zone);
  next.dns = Join("dns", zone);
  next.ns = Join("ns", next.dns);
  next.version = Join("dns-version", zone);
  next.ttl = out.options_.ttl;
  next.own_ips = out.options_.own_ips;
  return out;
}

void Zone::UpdateService(const std::string& key, const api::core::v1::Service* service) {
  if (service) {
    Service projected = Project(*service);
    auto [found, fresh] = services_.try_emplace(key);
    if (!fresh && found->second == projected) return;
    found->second = std::move(projected);
  } else if (services_.erase(key) == 0) {
    return;
  }
  changed_.insert(key);
}

void Zone::UpdateSlice(const std::string& key, const api::discovery::v1::EndpointSlice* slice) {
  std::string service = slice ? ServiceOfSlice(*slice) : "";
  auto before = service_of_slice_.find(key);
  if (before != service_of_slice_.end() && before->second != service) {
    auto of_service = slices_.find(before->second);
    of_service->second.erase(key);
    if (of_service->second.empty()) slices_.erase(of_service);
    changed_.insert(before->second);
    service_of_slice_.erase(before);
  }
  if (service.empty()) return;
  Slice projected = Project(*slice);
  auto [found, fresh] = slices_[service].try_emplace(key);
  if (!fresh && found->second == projected) return;
  found->second = std::move(projected);
  service_of_slice_[key] = service;
  changed_.insert(service);
}

void Zone::AddEndpoints(const std::string& key, bool headless, ServiceRecords& out) const {
  auto slices = slices_.find(key);
  if (slices == slices_.end()) return;
  for (const auto& [slice_key, slice] : slices->second) {
    uint16_t ports = static_cast<uint16_t>(out.ports.size());
    bool any = false;
    for (const SliceEndpoint& endpoint : slice.endpoints) {
      if (!headless && endpoint.hostname.empty()) continue;
      const std::string& host = endpoint.hostname.empty() ? DashedAddress(endpoint.ip) : endpoint.hostname;
      Name name = Join(host, out.key);
      if (!IsLabel(host) || !IsName(name)) continue;
      out.endpoints.push_back({std::move(name), endpoint.ip, ports});
      any = true;
    }
    if (any) out.ports.push_back(slice.ports);
  }
  std::sort(out.endpoints.begin(), out.endpoints.end());
}

std::shared_ptr<const ServiceRecords> Zone::Records(const std::string& key, const Service& service) const {
  auto out = std::make_shared<ServiceRecords>();
  out->key = NameOf(key, next_.svc);
  out->external = service.external;
  out->cluster_ips = service.cluster_ips;
  if (!service.headless) out->ports.push_back(service.ports);
  if (service.external.empty()) AddEndpoints(key, service.headless, *out);
  std::vector<IpAddress> ips = service.cluster_ips;
  if (service.headless) {
    for (const EndpointName& endpoint : out->endpoints) ips.push_back(endpoint.ip);
    std::sort(ips.begin(), ips.end());
    ips.erase(std::unique(ips.begin(), ips.end()), ips.end());
  }
  for (const IpAddress& ip : ips) {
    std::string& records = ip.is_v4() ? out->a : out->aaaa;
    records += RecordOf(ip.is_v4() ? kTypeA : kTypeAaaa, next_.ttl, ip.bytes());
  }
  bool none = ips.empty() && service.external.empty();
  return none || !IsName(out->key) ? nullptr : out;
}

void Zone::Rebuild(const std::string& key) {
  auto found = services_.find(key);
  std::shared_ptr<const ServiceRecords> records;
  if (found != services_.end()) records = Records(key, found->second);
  Name name = NameOf(key, next_.svc);
  bool was = next_.services.Find(name) != nullptr;
  std::string ns = key.substr(0, key.find('/'));
  if (was != (records != nullptr)) {
    size_t& count = namespaces_[ns];
    count += records ? 1 : static_cast<size_t>(-1);
    if (count == 0) namespaces_.erase(ns);
    namespaces_changed_ = true;
  }
  std::map<IpAddress, std::vector<Name>> pointers;
  if (records) {
    for (const IpAddress& ip : records->cluster_ips) pointers[ip] = {name};
    // Names made from addresses stay out: only a hostname asks for a PTR record.
    for (const EndpointName& endpoint : records->endpoints) {
      std::string_view rest = endpoint.name;
      if (TakeLabel(rest) != DashedAddress(endpoint.ip)) pointers[endpoint.ip].push_back(endpoint.name);
    }
  }
  next_.services.Set(name, std::move(records));
  SetPointers(key, std::move(pointers));
}

void Zone::SetPointers(const std::string& key, std::map<IpAddress, std::vector<Name>> pointers) {
  std::set<IpAddress> touched;
  if (auto before = pointers_of_.find(key); before != pointers_of_.end()) {
    for (const IpAddress& ip : before->second) {
      pointing_[ip].erase(key);
      touched.insert(ip);
    }
    pointers_of_.erase(before);
  }
  if (!pointers.empty()) {
    auto service = services_.find(key);
    std::vector<IpAddress>& ips = pointers_of_[key];
    for (auto& [ip, names] : pointers) {
      const auto& own = service->second.cluster_ips;
      bool cluster_ip = std::find(own.begin(), own.end(), ip) != own.end();
      pointing_[ip][key] = {cluster_ip, std::move(names)};
      ips.push_back(ip);
      touched.insert(ip);
    }
  }
  for (const IpAddress& ip : touched) RebuildPointer(ip);
}

void Zone::RebuildPointer(const IpAddress& ip) {
  auto found = pointing_.find(ip);
  auto out = std::make_shared<PointerRecords>();
  out->key = std::string(ip.bytes());
  bool cluster_ip = false;
  for (const auto& [key, pointing] : found->second) {
    if (pointing.cluster_ip && !cluster_ip) {
      out->names.clear();
      cluster_ip = true;
    } else if (cluster_ip) {
      continue;
    }
    out->names.insert(out->names.end(), pointing.names.begin(), pointing.names.end());
  }
  if (found->second.empty()) pointing_.erase(found);
  next_.pointers.Set(ip.bytes(), out->names.empty() ? nullptr : out);
}

void Zone::RebuildNamespaces() {
  auto names = std::make_shared<std::set<std::string, std::less<>>>();
  for (const auto& [name, count] : namespaces_) names->insert(name);
  next_.namespaces = std::move(names);
  namespaces_changed_ = false;
}

std::string Zone::SoaData() const {
  std::string out = next_.ns + Join("hostmaster", next_.zone);
  for (uint32_t value : {options_.serial, kRefresh, kRetry, kExpire, next_.ttl}) Append32(out, value);
  return out;
}

std::shared_ptr<const Snapshot> Zone::Unknown() const {
  auto out = std::make_shared<Snapshot>();
  out->known = false;
  out->zone = next_.zone;
  return out;
}

std::shared_ptr<const Snapshot> Zone::Commit() {
  if (changed_.empty() && committed_) return nullptr;
  for (const std::string& key : changed_) Rebuild(key);
  changed_.clear();
  if (namespaces_changed_) RebuildNamespaces();
  next_.soa = SoaData();
  ++options_.serial;
  committed_ = true;
  return std::make_shared<const Snapshot>(next_);
}

}  // namespace keelson::proxy::dns
