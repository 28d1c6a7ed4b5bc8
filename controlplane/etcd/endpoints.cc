#include "controlplane/etcd/endpoints.h"

#include <algorithm>
#include <utility>

#include "lib/base/log.h"
#include "lib/base/pause.h"

namespace keelson::etcd {
namespace {

namespace pb = etcdserverpb;
using std::chrono::milliseconds;

// The time for an endpoint to connect before the client tries the next one, and between two rounds over all of them.
constexpr milliseconds kConnectPatience{1000}, kRoundPause{50};
constexpr milliseconds kProbePeriod{1000}, kProbePatience{1500};
// Calls that wait so long have the endpoint probed at once, and then that often.
constexpr milliseconds kSlow{250}, kHurry{100};
// An election passes sooner.
constexpr milliseconds kLeaderless{700};
// What the new leader is to answer, it answers sooner.
constexpr milliseconds kLeaderPatience{500};
constexpr std::chrono::seconds kLearnPeriod{10};
// Our own etcd has to be well for so long before it is used again.
constexpr std::chrono::seconds kOwnSteady{10};
// Of a silent connection with calls. etcd refuses pings that come more often than every 5 s.
constexpr milliseconds kKeepalive{10000};

SteadyTime Now() { return std::chrono::steady_clock::now(); }

std::shared_ptr<grpc::Channel> Connect(const std::string& url, const ClientOptions& options) {
  constexpr std::string_view kTls = "https://", kPlain = "http://";
  if (url.starts_with(kTls)) {
    return rpc::TlsChannel(url.substr(kTls.size()),
                           {options.ca_pem, options.certificate_pem, options.key_pem, "", kKeepalive});
  }
  return rpc::PlainChannel(url.starts_with(kPlain) ? url.substr(kPlain.size()) : url, kKeepalive);
}

// With `hasty` a refused connection ends the wait.
bool AwaitConnected(grpc::Channel& channel, milliseconds patience, bool hasty, const std::stop_token& stop) {
  if (!hasty) return rpc::AwaitConnected(channel, patience, stop);
  constexpr milliseconds kSlice{100};
  const SteadyTime deadline = Now() + patience;
  while (true) {
    const grpc_connectivity_state state = channel.GetState(true);
    if (state == GRPC_CHANNEL_READY) return true;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || stop.stop_requested() || Now() >= deadline) return false;
    channel.WaitForStateChange(state, std::chrono::system_clock::now() + rpc::TimeLeft(deadline, kSlice));
  }
}

// gRPC makes a connection only while a thread waits for one. Returns whether there is one again.
bool Rest(const Endpoint& endpoint, const std::stop_token& stop) {
  const grpc_connectivity_state state = endpoint.channel->GetState(true);
  if (state == GRPC_CHANNEL_READY) {
    Pause(Clock::Real(), kHurry, stop);
    return false;
  }
  endpoint.channel->WaitForStateChange(state, std::chrono::system_clock::now() + kHurry);
  return endpoint.channel->GetState(false) == GRPC_CHANNEL_READY;
}

}  // namespace

Endpoint::Endpoint(const std::string& address, const ClientOptions& options)
    : url(address),
      channel(Connect(address, options)),
      kv(pb::KV::NewStub(channel)),
      lease(pb::Lease::NewStub(channel)),
      watch(pb::Watch::NewStub(channel)),
      maintenance(pb::Maintenance::NewStub(channel)) {}

Endpoint::Use::Use(Endpoint& endpoint, milliseconds timeout, std::stop_token stop)
    : endpoint_(endpoint), stream_(timeout.count() <= 0), call_(timeout, std::move(stop)) {
  MutexLock lock(endpoint_.mutex_);
  place_ = endpoint_.uses_.insert(endpoint_.uses_.end(), this);
  if (!endpoint_.closed_) return;
  lost_.store(Lost::kMember);
  call_.Cancel();
}

Endpoint::Use::~Use() {
  MutexLock lock(endpoint_.mutex_);
  endpoint_.uses_.erase(place_);
}

Result<> Endpoint::Use::Done(const grpc::Status& status, std::string_view what) const {
  const Lost lost = lost_.load();
  if (status.ok() || lost == Lost::kNot) return call_.Done(status, what);
  const std::string name(what);
  return Error(Code::kUnavailable, lost == Lost::kLeader
                                       ? name + ": etcd has another leader, and the answer has not come"
                                       : name + ": the member " + endpoint_.url + " does not answer");
}

bool Endpoint::Use::IsOfLeader(const grpc::Status& status) const {
  if (lost_.load() != Lost::kNot) return lost_.load() == Lost::kLeader;
  // etcd's texts for reads and writes that were under way.
  for (const char* text : {"etcdserver: leader changed", "possibly due to previous leader failure"}) {
    if (status.error_message().find(text) != std::string::npos) return true;
  }
  return false;
}

void Endpoint::Answered(uint64_t leader, uint64_t term) {
  bool healthy = true;
  answers_.store(true);
  {
    MutexLock lock(mutex_);
    const SteadyTime now = Now();
    if (leader == 0) {
      if (!leaderless_since_) leaderless_since_ = now;
      healthy = now - *leaderless_since_ < kLeaderless;
    } else {
      leaderless_since_.reset();
      if (term_ != 0 && (leader != leader_ || term != term_)) changed_ = now;
      leader_ = leader;
      term_ = term;
      if (changed_ && now - *changed_ >= kLeaderPatience) {
        const SteadyTime before = *std::exchange(changed_, std::nullopt);
        Cancel(Use::Lost::kLeader, [&](const Use& use) { return !use.stream_ && use.began_ < before; });
      }
    }
  }
  SetHealthy(healthy);
}

void Endpoint::NotAnswered(SteadyTime asked) {
  answers_.store(false);
  SetHealthy(false);
  // What has begun since, for want of a better endpoint.
  MutexLock lock(mutex_);
  Cancel(Use::Lost::kMember, [&](const Use& use) { return use.began_ < asked; });
}

bool Endpoint::InDoubt() const {
  MutexLock lock(mutex_);
  if (changed_ || leaderless_since_) return true;
  const SteadyTime before = Now() - kSlow;
  return std::any_of(uses_.begin(), uses_.end(),
                     [&](const Use* use) { return !use->stream_ && use->began_ < before; });
}

void Endpoint::SetHealthy(bool healthy) {
  if (healthy_.exchange(healthy) == healthy) return;
  if (healthy) {
    log::Info("An etcd endpoint answers again", {{"endpoint", url}});
    return;
  }
  log::Warn("An etcd endpoint does not answer, or has no leader", {{"endpoint", url}});
  MutexLock lock(mutex_);
  Cancel(Use::Lost::kMember, [](const Use&) { return true; });
}

void Endpoint::CancelStreams() {
  MutexLock lock(mutex_);
  Cancel(Use::Lost::kMember, [](const Use& use) { return use.stream_; });
}

void Endpoint::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  Cancel(Use::Lost::kMember, [](const Use&) { return true; });
}

void Endpoint::Cancel(Use::Lost why, const std::function<bool(const Use&)>& which) {
  for (Use* use : uses_) {
    if (!which(*use)) continue;
    use->lost_.store(why);
    use->call_.Cancel();
  }
}

Endpoints::Endpoints(const ClientOptions& options)
    : options_(options),
      own_(!options.endpoints.empty() && options.endpoints[0].starts_with("unix://") &&
           !options.ca_pem.empty()) {
  {
    MutexLock lock(mutex_);
    watched_ = own_ || options.endpoints.size() > 1;
  }
  Add(options.endpoints);
}

Endpoints::~Endpoints() {
  std::vector<std::jthread> watchers;
  {
    MutexLock lock(mutex_);
    watched_ = false;
    watchers.swap(watchers_);
  }
  for (std::jthread& watcher : watchers) watcher.request_stop();
}

void Endpoints::Add(const std::vector<std::string>& urls) {
  MutexLock lock(mutex_);
  for (const std::string& url : urls) {
    const bool known =
        std::any_of(all_.begin(), all_.end(), [&](const auto& endpoint) { return endpoint->url == url; });
    if (known) continue;
    all_.push_back(std::make_unique<Endpoint>(url, options_));
    if (!watched_) continue;
    watchers_.emplace_back(
        [this, endpoint = all_.back().get()](const std::stop_token& stop) { Watch(*endpoint, stop); });
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
    // Without a healthy one, any that answers may be the first that comes back.
    const bool healthy = std::any_of(all.begin(), all.end(), [](Endpoint* one) { return one->healthy(); });
    const bool answers = std::any_of(all.begin(), all.end(), [](Endpoint* one) { return one->answers(); });
    const auto good = [&](const Endpoint& one) {
      return healthy ? one.healthy() : one.answers() || !answers;
    };
    const bool hasty = all.size() > 1;
    for (size_t tried = 0; tried < all.size(); ++tried) {
      if (stop.stop_requested()) return Error(Code::kCancelled, "etcd: stopped");
      if (closed_.load()) return Error(Code::kUnavailable, "etcd: it did not answer, and the process ends");
      Endpoint& endpoint = *all[current_.load() % all.size()];
      if (good(endpoint) &&
          AwaitConnected(*endpoint.channel, rpc::TimeLeft(deadline, kConnectPatience), hasty, stop)) {
        return &endpoint;
      }
      Abandon(endpoint);
    }
    if (Now() >= deadline) return Error(Code::kUnavailable, "etcd: no endpoint can be reached");
    if (hasty) Pause(Clock::Real(), kRoundPause, stop);
  }
}

void Endpoints::Abandon(const Endpoint& endpoint) {
  const std::vector<Endpoint*> all = this->all();
  if (all[0] == &endpoint) left_own_.store(Now());
  for (size_t i = 0; i < all.size(); ++i) {
    size_t index = i;
    if (all[i] == &endpoint) current_.compare_exchange_strong(index, (i + 1) % all.size());
  }
}

void Endpoints::Watch(Endpoint& endpoint, const std::stop_token& stop) {
  const bool own = own_ && all()[0] == &endpoint;
  SteadyTime learn = Now();
  while (!stop.stop_requested()) {
    if (own && Now() >= learn) learn = Now() + (Learn(stop) ? milliseconds(kLearnPeriod) : kProbePeriod);
    if (all().size() > 1) Probe(endpoint, stop);
    if (own && !endpoint.healthy()) left_own_.store(Now());
    if (own && Now() >= left_own_.load() + kOwnSteady) ReturnToOwn();
    for (const SteadyTime next = Now() + kProbePeriod; Now() < next && !stop.stop_requested();) {
      if (Rest(endpoint, stop) || endpoint.InDoubt()) break;
    }
  }
}

void Endpoints::ReturnToOwn() {
  if (current_.exchange(0) == 0) return;
  const std::vector<Endpoint*> all = this->all();
  log::Info("Our own etcd is used again", {{"endpoint", all[0]->url}});
  for (size_t i = 1; i < all.size(); ++i) all[i]->CancelStreams();
}

bool Endpoints::Learn(const std::stop_token& stop) {
  rpc::Call call(kProbePatience, stop);
  pb::MemberListResponse reply;
  const auto cluster = pb::Cluster::NewStub(all()[0]->channel);
  if (!cluster->MemberList(call.context(), pb::MemberListRequest(), &reply).ok()) return false;
  std::vector<std::string> urls;
  for (const pb::Member& member : reply.members()) {
    // Our own one has its socket among its URLs, and a member without a vote serves no reads.
    const auto& clients = member.clienturls();
    const bool ours = member.id() == reply.header().member_id();
    if (!ours && !member.islearner()) urls.insert(urls.end(), clients.begin(), clients.end());
  }
  std::erase_if(urls, [](const std::string& url) { return !url.starts_with("https://"); });
  Add(urls);
  return true;
}

void Endpoints::Probe(Endpoint& endpoint, const std::stop_token& stop) {
  const SteadyTime asked = Now();
  rpc::Call call(kProbePatience, stop);
  pb::StatusResponse reply;
  const bool answered = endpoint.maintenance->Status(call.context(), pb::StatusRequest(), &reply).ok();
  if (stop.stop_requested()) return;
  if (answered) {
    endpoint.Answered(reply.leader(), reply.raftterm());
  } else {
    endpoint.NotAnswered(asked);
  }
}

}  // namespace keelson::etcd
