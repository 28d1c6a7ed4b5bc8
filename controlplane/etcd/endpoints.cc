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
constexpr unsigned kLearnRounds = 10;  // of probes
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
  if (endpoint_.closed_) endpoint_.CancelUses();
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
  CancelUses();
}

void Endpoint::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  CancelUses();
}

void Endpoint::CancelUses() {
  for (Use* use : uses_) {
    use->lost_.store(true);
    use->call_.Cancel();
  }
}

Endpoints::Endpoints(const ClientOptions& options)
    : options_(options),
      own_(!options.endpoints.empty() && options.endpoints[0].starts_with("unix://") &&
           !options.ca_pem.empty()) {
  Add(options.endpoints);
  if (own_ || options.endpoints.size() > 1) {
    watcher_ = std::jthread([this](std::stop_token stop) { Watch(std::move(stop)); });
  }
}

void Endpoints::Add(const std::vector<std::string>& urls) {
  MutexLock lock(mutex_);
  for (const std::string& url : urls) {
    const bool known =
        std::any_of(all_.begin(), all_.end(), [&](const auto& endpoint) { return endpoint->url == url; });
    if (!known) all_.push_back(std::make_unique<Endpoint>(url, options_));
  }
}

std::vector<Endpoint*> Endpoints::all() const {
  MutexLock lock(mutex_);
  std::vector<Endpoint*> out;
  for (const auto& endpoint : all_) out.push_back(endpoint.get());
  return out;
}

void Endpoints::Close() {
  // New calls are turned away first; one that is past that check is cancelled by its endpoint.
  closed_.store(true);
  for (Endpoint* endpoint : all()) endpoint->Close();
}

Result<Endpoint*> Endpoints::Pick(SteadyTime deadline, const std::stop_token& stop) {
  while (true) {
    const std::vector<Endpoint*> all = this->all();
    // Without a healthy one, any may be the first that comes back.
    const bool choosy = std::any_of(all.begin(), all.end(), [](Endpoint* one) { return one->healthy(); });
    for (size_t tried = 0; tried < all.size(); ++tried) {
      if (stop.stop_requested()) return Error(Code::kCancelled, "etcd: stopped");
      if (closed_.load()) return Error(Code::kUnavailable, "etcd: it did not answer, and the process ends");
      Endpoint& endpoint = *all[current_.load() % all.size()];
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
  const std::vector<Endpoint*> all = this->all();
  for (size_t i = 0; i < all.size(); ++i) {
    size_t index = i;
    if (all[i] == &endpoint) current_.compare_exchange_strong(index, (i + 1) % all.size());
  }
}

void Endpoints::Watch(std::stop_token stop) {
  for (unsigned round = 0; !stop.stop_requested(); ++round) {
    if (own_ && round % kLearnRounds == 0) Learn(stop);
    if (all().size() > 1) Probe(stop);
    Pause(Clock::Real(), kProbePeriod, stop);
  }
}

void Endpoints::Learn(const std::stop_token& stop) {
  rpc::Call call(kProbePatience, stop);
  pb::MemberListResponse reply;
  const auto cluster = pb::Cluster::NewStub(all()[0]->channel);
  if (!cluster->MemberList(call.context(), pb::MemberListRequest(), &reply).ok()) return;
  std::vector<std::string> urls;
  for (const pb::Member& member : reply.members()) {
    // Our own one has its socket among its URLs, and a member without a vote serves no reads.
    const auto& clients = member.clienturls();
    const bool ours = member.id() == reply.header().member_id();
    if (!ours && !member.islearner()) urls.insert(urls.end(), clients.begin(), clients.end());
  }
  std::erase_if(urls, [](const std::string& url) { return !url.starts_with("https://"); });
  Add(urls);
}

void Endpoints::Probe(const std::stop_token& stop) {
  Mutex mutex;
  CondVar answered;
  const std::vector<Endpoint*> all = this->all();
  size_t open = all.size();
  std::vector<StatusProbe> probes(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    StatusProbe& probe = probes[i];
    probe.context.set_deadline(std::chrono::system_clock::now() + kProbePatience);
    all[i]->maintenance->async()->Status(&probe.context, &probe.request, &probe.reply,
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
  for (size_t i = 0; i < all.size(); ++i) {
    all[i]->SetHealthy(probes[i].status.ok() && probes[i].reply.leader() != 0);
  }
}

}  // namespace keelson::etcd
