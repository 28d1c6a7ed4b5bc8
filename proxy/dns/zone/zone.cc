#include "proxy/dns/zone/zone.h"

#include <algorithm>

#include "proxy/dns/message/message.h"
#include "proxy/dns/zone/records.h"

namespace keelson::proxy::dns {
namespace {

// SOA timers as CoreDNS gives them; nobody transfers this zone.
constexpr uint32_t kRefresh = 7200, kRetry = 1800, kExpire = 86400;

Name NameOf(const std::string& key, const Name& svc) {
  size_t slash = key.find('/');
  return Join(key.substr(slash + 1), Join(key.substr(0, slash), svc));
}

std::string_view ParentOf(std::string_view name) {
  TakeLabel(name);
  return name;
}

}  // namespace

Result<Zone> Zone::Create(ZoneOptions options) {
  Zone out(std::move(options));
  KEELSON_ASSIGN_OR_RETURN(Name zone, ParseName(out.options_.domain));
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
  std::optional<std::string> packed;
  if (service) packed = Pack(FactsOf(*service));
  auto found = known_.find(key);
  if (found == known_.end()) {
    if (!packed) return;
    found = known_.try_emplace(key).first;
  }
  if (found->second.service == packed) return;
  found->second.service = std::move(packed);
  changed_.insert(key);
}

void Zone::ForgetSlice(const std::string& key) {
  auto found = slices_.find(key);
  if (found == slices_.end()) return;
  const std::string service(found->second);
  std::erase_if(known_.at(service).slices, [&](const auto& slice) { return slice.first == &found->first; });
  slices_.erase(found);
  changed_.insert(service);
}

void Zone::UpdateSlice(const std::string& key, const api::discovery::v1::EndpointSlice* slice) {
  const std::string service = slice ? ServiceOfSlice(*slice) : "";
  if (auto before = slices_.find(key); before != slices_.end() && before->second != service) ForgetSlice(key);
  if (service.empty()) return;
  auto known = known_.try_emplace(service).first;
  const auto own = slices_.try_emplace(key, known->first).first;
  std::string packed = Pack(FactsOf(*slice));
  auto& slices = known->second.slices;
  const auto found =
      std::find_if(slices.begin(), slices.end(), [&](const auto& one) { return one.first == &own->first; });
  if (found == slices.end()) {
    slices.emplace_back(&own->first, std::move(packed));
  } else if (found->second != packed) {
    found->second = std::move(packed);
  } else {
    return;
  }
  changed_.insert(service);
}

void Zone::AddEndpoints(const Known& known, bool headless, ServiceRecords& out) const {
  for (const auto& [key, packed] : known.slices) {
    SliceFacts slice = UnpackSlice(packed);
    const uint16_t ports = static_cast<uint16_t>(out.ports.size());
    bool any = false;
    for (const SliceEndpoint& endpoint : slice.endpoints) {
      if (!headless && endpoint.hostname.empty()) continue;
      const std::string& host = endpoint.hostname.empty() ? DashedAddress(endpoint.ip) : endpoint.hostname;
      Name name = Join(host, out.key);
      if (!IsLabel(host) || !IsName(name)) continue;
      out.endpoints.push_back({std::move(name), endpoint.ip, ports});
      any = true;
    }
    if (any) out.ports.push_back(std::move(slice.ports));
  }
  std::sort(out.endpoints.begin(), out.endpoints.end());
}

std::shared_ptr<const ServiceRecords> Zone::Records(const Name& name, const Known& known) const {
  ServiceFacts service = UnpackService(*known.service);
  auto out = std::make_shared<ServiceRecords>();
  out->key = name;
  out->external = std::move(service.external);
  out->cluster_ips = std::move(service.cluster_ips);
  if (!service.headless) out->ports.push_back(std::move(service.ports));
  if (out->external.empty()) AddEndpoints(known, service.headless, *out);
  std::vector<IpAddress> ips = out->cluster_ips;
  if (service.headless) {
    for (const EndpointName& endpoint : out->endpoints) ips.push_back(endpoint.ip);
    std::sort(ips.begin(), ips.end());
    ips.erase(std::unique(ips.begin(), ips.end()), ips.end());
  }
  for (const IpAddress& ip : ips) {
    std::string& records = ip.is_v4() ? out->a : out->aaaa;
    records += RecordOf(ip.is_v4() ? kTypeA : kTypeAaaa, next_.ttl, ip.bytes());
  }
  out->a.shrink_to_fit();
  out->aaaa.shrink_to_fit();
  bool none = ips.empty() && out->external.empty();
  return none || !IsName(out->key) ? nullptr : out;
}

void Zone::Rebuild(const std::string& key) {
  const auto found = known_.find(key);
  if (found == known_.end()) return;
  const Name name = NameOf(key, next_.svc);
  std::shared_ptr<const ServiceRecords> records;
  if (found->second.service) records = Records(name, found->second);
  bool was = next_.services.Find(name) != nullptr;
  std::string ns = key.substr(0, key.find('/'));
  if (was != (records != nullptr)) {
    size_t& count = namespaces_[ns];
    count += records ? 1 : static_cast<size_t>(-1);
    if (count == 0) namespaces_.erase(ns);
    namespaces_changed_ = true;
  }
  Pointers pointers;
  if (records) {
    for (const IpAddress& ip : records->cluster_ips) pointers[ip] = {name};
    // Names made from addresses stay out: only a hostname asks for a PTR record.
    for (const EndpointName& endpoint : records->endpoints) {
      std::string_view rest = endpoint.name;
      if (TakeLabel(rest) != DashedAddress(endpoint.ip)) pointers[endpoint.ip].push_back(endpoint.name);
    }
  }
  next_.services.Set(name, std::move(records));
  SetPointers(name, found->second, pointers);
  if (found->second.empty()) known_.erase(found);
}

void Zone::SetPointers(const Name& name, Known& known, const Pointers& pointers) {
  for (const IpAddress& ip : known.pointed) {
    if (!pointers.contains(ip)) RebuildPointer(ip, name, {});
  }
  known.pointed.clear();
  known.pointed.reserve(pointers.size());
  for (const auto& [ip, names] : pointers) {
    RebuildPointer(ip, name, names);
    known.pointed.push_back(ip);
  }
}

// The address has these names of the Service now, besides others'.
void Zone::RebuildPointer(const IpAddress& ip, const Name& service, const std::vector<Name>& names) {
  auto out = std::make_shared<PointerRecords>();
  out->key = std::string(ip.bytes());
  std::vector<Name> all = names;
  if (const PointerRecords* before = next_.pointers.Find(ip.bytes())) {
    for (const Name& name : before->names) {
      if (name != service && ParentOf(name) != service) all.push_back(name);
    }
  }
  // A Service's own name has as many labels as every other's; an endpoint's has one more.
  const auto first = std::stable_partition(
      all.begin(), all.end(), [&](const Name& name) { return ParentOf(ParentOf(name)) == next_.svc; });
  std::sort(all.begin(), first);
  std::sort(first, all.end());
  out->cluster_ips = static_cast<size_t>(first - all.begin());
  out->names = std::move(all);
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
