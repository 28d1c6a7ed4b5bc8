#include "controlplane/etcd/endpoints.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/base/pause.h"

namespace keelson::etcd {
namespace {

namespace pb = etcdserverpb;
using std::chrono::milliseconds;

// The time for an endpoint to connect before the client tries the next one.
constexpr milliseconds kConnectPatience{1000};
constexpr milliseconds kProbePeriod{1000}, kProbePatience{1500};
// Of a silent connection with calls. etcd refuses pings that come more often than every 5 s.
constexpr milliseconds kKeepalive{10000};

std::shared_ptr<grpc::Channel> Connect(const std::string& url, const ClientOptions& options) {
  constexpr std::string_view kTls = "https://", kPlain = "http://";
  if (url.starts_with(kTls)) {
    return rpc::TlsChannel(url.substr(kTls.size()),
                           {options.ca_pem, options.certificate_pem, options.key_pem, "", kKeepalive});
  }
  return rpc::PlainChannel(url.starts_with(kPlain) ? url.substr(kPlain.size()) : url, kKeepalive);
}

// One question for a member's status, answered on a thread of gRPC.
struct StatusProbe {
  grpc::ClientContext context;
  pb::StatusRequest request;
  pb::StatusResponse reply;
  grpc::Status status;
};

}  // namespace

Endpoint::Endpoint(const std::string& address, const ClientOptions& options)
    : url(address),
      channel(Connect(address, options)),
      kv(pb::KV::NewStub(channel)),
      lease(pb::Lease::NewStub(channel)),
      watch(pb::Watch::NewStub(channel)),
      maintenance(pb::Maintenance::NewStub(channel)) {}

Endpoint::Use::Use(Endpoint& endpoint, milliseconds timeout, std::stop_token stop)
    : endpoint_(endpoint), call_(timeout, std::move(stop)) {
  MutexLock lock(endpoint_.mutex_);
  place_ = endpoint_.uses_.insert(endpoint_.uses_.end(), this);
}

Endpoint::Use::~Use() {
  MutexLock lock(endpoint_.mutex_);
  endpoint_.uses_.erase(place_);
}

Result<> Endpoint::Use::Done(const grpc::Status& status, std::string_view what) const {
  if (!status.ok() && lost_.load()) {
    return Error(Code::kUnavailable,
                 std::string(what) + ": the member " + endpoint_.url + " does not answer");
  }
  return call_.Done(status, what);
}

void Endpoint::SetHealthy(bool healthy) {
  if (healthy_.exchange(healthy) == healthy) return;
  if (healthy) {
    log::Info("An etcd endpoint answers again", {{"endpoint", url}});
    return;
  }
  log::Warn("An etcd endpoint does not answer, or has no leader", {{"endpoint", url}});
  MutexLock lock(mutex_);
  for (Use* use : uses_) {
    use->lost_.store(true);
    use->call_.Cancel();
  }
}

Endpoints::Endpoints(const ClientOptions& options) {
  for (const std::string& url : options.endpoints) {
    all_.push_back(std::make_unique<Endpoint>(url, options));
  }
  if (all_.size() > 1) {
    watcher_ = std::jthread([this](std::stop_token stop) { Watch(std::move(stop)); });
  }
}

Result<Endpoint*> Endpoints::Pick(SteadyTime deadline, const std::stop_token& stop) {
  while (true) {
    // Without a healthy one, any may be the first that comes back.
    const bool choosy = std::any_of(all_.begin(), all_.end(), [](const auto& one) { return one->healthy(); });
    for (size_t tried = 0; tried < all_.size(); ++tried) {
      if (stop.stop_requested()) return Error(Code::kCancelled, "etcd: stopped");
      Endpoint& endpoint = *all_[current_.load() % all_.size()];
      if ((!choosy || endpoint.healthy()) &&
          rpc::AwaitConnected(*endpoint.channel, rpc::TimeLeft(deadline, kConnectPatience), stop)) {
        return &endpoint;
      }
      Abandon(endpoint);
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Error(Code::kUnavailable, "etcd: no endpoint can be reached");
    }
  }
}

void Endpoints::Abandon(const Endpoint& endpoint) {
  for (size_t i = 0; i < all_.size(); ++i) {
    size_t index = i;
    if (all_[i].get() == &endpoint) current_.compare_exchange_strong(index, (i + 1) % all_.size());
  }
}

void Endpoints::Watch(std::stop_token stop) {
  while (!stop.stop_requested()) {
    Probe(stop);
    Pause(Clock::Real(), kProbePeriod, stop);
  }
}

void Endpoints::Probe(const std::stop_token& stop) {
  Mutex mutex;
  CondVar answered;
  size_t open = all_.size();
  std::vector<StatusProbe> probes(all_.size());
  for (size_t i = 0; i < all_.size(); ++i) {
    StatusProbe& probe = probes[i];
    probe.context.set_deadline(std::chrono::system_clock::now() + kProbePatience);
    all_[i]->maintenance->async()->Status(&probe.context, &probe.request, &probe.reply,
                                          [&, i](grpc::Status status) {
                                            MutexLock lock(mutex);
                                            probes[i].status = std::move(status);
                                            --open;
                                            answered.notify_all();
                                          });
  }
  // The probes are on this stack: every answer is waited for, and a stop ends them early.
  std::stop_callback cancel(stop, [&] {
    for (StatusProbe& probe : probes) probe.context.TryCancel();
  });
  {
    MutexLock lock(mutex);
    while (open > 0) answered.wait(mutex);
  }
  if (stop.stop_requested()) return;
  for (size_t i = 0; i < all_.size(); ++i) {
    all_[i]->SetHealthy(probes[i].status.ok() && probes[i].reply.leader() != 0);
  }
}

}  // namespace keelson::etcd
