#include "proxy/dns/cluster_dns.h"

#include <algorithm>

#include "lib/api/types.h"

namespace keelson::proxy::dns {
namespace {

// Between two snapshots at least: a storm of changes costs no more than this many a second.
constexpr std::chrono::milliseconds kBatchTime{5};

// Grows from one start to the next, as a zone's serial should; secondaries there are none.
uint32_t FirstSerial(Clock& clock) {
  auto since = clock.Now().time_since_epoch();
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(since).count());
}

std::vector<Listen> Sockets(const ClusterDnsOptions& options) {
  std::vector<Listen> out;
  for (const IpAddress& ip : options.addresses) out.push_back({ip, options.port});
  return out;
}

}  // namespace

ClusterDns::ClusterDns(const ClusterDnsOptions& options, Zone zone)
    : options_(options), loop_(event::Loop::Create("dns")), zone_(std::move(zone)) {}

Result<std::unique_ptr<ClusterDns>> ClusterDns::Create(const ClusterDnsOptions& options, Clock& clock) {
  ZoneOptions of_zone{.domain = options.domain, .own_ips = options.addresses, .serial = FirstSerial(clock)};
  KEELSON_ASSIGN_OR_RETURN(Zone zone, Zone::Create(std::move(of_zone)));
  std::unique_ptr<ClusterDns> out(new ClusterDns(options, std::move(zone)));
  ForwarderOptions others;
  others.resolv_conf = options.resolv_conf;
  others.stub_domains = options.stub_domains;
  others.own_ips = options.addresses;
  KEELSON_ASSIGN_OR_RETURN(out->forwarder_, Forwarder::Create(std::move(others), out->loop_, clock));
  KEELSON_ASSIGN_OR_RETURN(out->addresses_, AddressWriter::Open(clock));
  out->responder_ = std::make_unique<Responder>(out->forwarder_.get(), clock, out->addresses_.get());
  {
    MutexLock lock(out->mutex_);
    out->responder_->SetZone(out->zone_.Unknown());
  }
  KEELSON_ASSIGN_OR_RETURN(out->udp_, UdpServer::Create(Sockets(options), *out->responder_));
  KEELSON_ASSIGN_OR_RETURN(out->tcp_, TcpServer::Create(Sockets(options), *out->responder_, out->loop_));
  return out;
}

ClusterDns::~ClusterDns() {
  tcp_.reset();
  udp_.reset();
  forwarder_.reset();
}

void ClusterDns::OnService(const std::string& key, const corev1::Service* service) {
  MutexLock lock(mutex_);
  zone_.UpdateService(key, service);
  pending_ = true;
  if (synced_) changed_.notify_all();
}

void ClusterDns::OnSlice(const std::string& key, const discoveryv1::EndpointSlice* slice) {
  MutexLock lock(mutex_);
  zone_.UpdateSlice(key, slice);
  pending_ = true;
  if (synced_) changed_.notify_all();
}

void ClusterDns::MarkSynced() {
  MutexLock lock(mutex_);
  synced_ = pending_ = true;
  changed_.notify_all();
}

bool ClusterDns::IsFor(const corev1::Service& service) const {
  auto ours = [&](const std::string& text) {
    Result<IpAddress> ip = IpAddress::Parse(text);
    return ip &&
           std::find(options_.addresses.begin(), options_.addresses.end(), *ip) != options_.addresses.end();
  };
  const auto& ips = service.spec().cluster_ips();
  return ours(service.spec().cluster_ip()) || std::any_of(ips.begin(), ips.end(), ours);
}

bool ClusterDns::Ready() const { return ready_; }

void ClusterDns::AwaitSync(std::stop_token stop) {
  MutexLock lock(mutex_);
  changed_.wait_for(mutex_, stop, options_.patience,
                    [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return synced_; });
}

void ClusterDns::AwaitChange(std::stop_token stop) {
  MutexLock lock(mutex_);
  changed_.wait_for(mutex_, stop, kBatchTime, [] { return false; });
  changed_.wait(mutex_, stop, [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return synced_ && pending_; });
}

void ClusterDns::Publish() {
  std::shared_ptr<const Snapshot> next;
  {
    MutexLock lock(mutex_);
    if (!synced_) return;
    pending_ = false;
    next = zone_.Commit();
  }
  if (next) responder_->SetZone(std::move(next));
  ready_ = true;
}

Result<> ClusterDns::Follow(std::stop_token stop, const std::function<Result<>()>& on_first) {
  AwaitSync(stop);
  Publish();
  if (!stop.stop_requested()) KEELSON_RETURN_IF_ERROR(on_first());
  while (!stop.stop_requested()) {
    AwaitChange(stop);
    Publish();
  }
  return {};
}

}  // namespace keelson::proxy::dns
