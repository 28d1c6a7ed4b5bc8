#include "proxy/dns/forwarder.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <unordered_map>

#include "lib/base/log.h"
#include "proxy/dns/loop_detector.h"
#include "proxy/dns/resolv_conf.h"
#include "proxy/dns/upstream.h"

namespace keelson::proxy::dns {
namespace {

constexpr uint16_t kDnsPort = 53;

}  // namespace

struct Forwarder::State : std::enable_shared_from_this<Forwarder::State> {
  // One pending question and its waiting clients.
  struct Flight {
    Question question;
    std::vector<Done> waiting;
    UpstreamGroup* group;
    std::vector<std::shared_ptr<Upstream>> order;
    size_t tried = 0;
    SteadyTime start, try_start;
    std::unique_ptr<Exchange> exchange;
    std::shared_ptr<const StoredAnswer> refusal;  // SERVFAIL, REFUSED: given on when nobody does better
  };
  using Flights = std::unordered_map<Question, std::unique_ptr<Flight>, QuestionHash>;

  State(ForwarderOptions o, std::shared_ptr<event::Loop> l, Clock& c)
      : options(std::move(o)),
        loop(std::move(l)),
        clock(c),
        cache(options.cache, c),
        conf(options.resolv_conf) {}

  Result<> Init();
  void Start();
  void Stop();
  void ReadServers();
  void SetServers(UpstreamGroup& group, const std::vector<Listen>& servers);
  UpstreamGroup& GroupOf(const Name& name);
  void Begin(const Question& question, Done done);
  void TryNext(Flight& flight);
  void OnAnswer(Flight& flight, Upstream& upstream, Result<StoredAnswer> answer);
  void Finish(Flight& flight, const Resolved& resolved);
  void GiveUp(Flight& flight);

  const ForwarderOptions options;
  const std::shared_ptr<event::Loop> loop;
  Clock& clock;
  Cache cache;
  // The rest is the loop's.
  ResolvConf conf;
  std::vector<std::unique_ptr<UpstreamGroup>> groups;  // longest suffix first; the last is the root
  std::unique_ptr<event::Timer> file_timer;
  Flights flights;
  bool stopped = false;
  std::unique_ptr<LoopDetector> loops;
  metrics::Value& rejects =
      metrics::Counter(
          "coredns_forward_max_concurrent_rejects_total",
          "Counter of the number of queries rejected because the concurrent queries were at maximum.")
          .With();
  metrics::Value& broken = metrics::Counter("coredns_forward_healthcheck_broken_total",
                                            "Counter of the number of complete failures of the healthchecks.")
                               .With();
};

Result<> Forwarder::State::Init() {
  auto add = [&](Name suffix) -> UpstreamGroup& {
    groups.push_back(std::make_unique<UpstreamGroup>());
    groups.back()->suffix = std::move(suffix);
    return *groups.back();
  };
  for (const auto& [domain, servers] : options.stub_domains) {
    Result<Name> suffix = ParseName(domain);
    if (!suffix) return suffix.error().Wrap("stub domain \"" + domain + "\"");
    SetServers(add(*suffix), servers);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a->suffix.size() > b->suffix.size(); });
  UpstreamGroup& root = add(Name(1, '\0'));
  if (!options.servers.empty()) SetServers(root, options.servers);
  return {};
}

void Forwarder::State::SetServers(UpstreamGroup& group, const std::vector<Listen>& servers) {
  std::vector<std::shared_ptr<Upstream>> next;
  for (const Listen& server : servers) {
    const auto& own = options.own_ips;
    if (std::find(own.begin(), own.end(), server.ip) != own.end()) continue;
    auto same = std::find_if(group.servers.begin(), group.servers.end(), [&](const auto& known) {
      return known->server().ip == server.ip && known->server().port == server.port;
    });
    next.push_back(same != group.servers.end()
                       ? *same
                       : std::make_shared<Upstream>(*loop, server, options.probe_period));
  }
  group.servers = std::move(next);
  group.looping = false;
}

void Forwarder::State::Start() {
  file_timer = std::make_unique<event::Timer>(*loop);
  loops = std::make_unique<LoopDetector>(*loop, options.try_timeout, options.probe_period);
  for (auto& group : groups) loops->Probe(*group);
  if (options.servers.empty() && !options.resolv_conf.empty()) ReadServers();
}

void Forwarder::State::ReadServers() {
  if (conf.Changed()) {
    Result<std::vector<IpAddress>> ips = conf.Read();
    if (ips) {
      std::vector<Listen> servers;
      for (const IpAddress& ip : *ips) servers.push_back({ip, kDnsPort});
      SetServers(*groups.back(), servers);
      log::Info("DNS servers of the node", {{"file", options.resolv_conf}, {"count", servers.size()}});
      loops->Probe(*groups.back());
    } else {  // those known so far are better than none
      log::Warn("Cannot read the node's DNS servers", {{"err", ips.error()}});
    }
  }
  file_timer->Start(options.file_period, [this] { ReadServers(); });
}

UpstreamGroup& Forwarder::State::GroupOf(const Name& name) {
  for (auto& group : groups) {
    if (EndsWith(name, group->suffix)) return *group;
  }
  return *groups.back();
}

void Forwarder::State::Begin(const Question& question, Done done) {
  if (stopped || loops->Sees(question)) return done({});
  if (auto found = flights.find(question); found != flights.end()) {
    found->second->waiting.push_back(std::move(done));
    return;
  }
  if (flights.size() >= options.max_concurrent) {
    rejects.Increment();
    return done({.refused = true});
  }
  auto flight = std::make_unique<Flight>();
  flight->question = question;
  flight->waiting.push_back(std::move(done));
  flight->group = &GroupOf(question.name);
  if (!flight->group->looping) flight->order = flight->group->Order();
  flight->start = clock.SteadyNow();
  Flight& begun = *flight;
  flights[question] = std::move(flight);
  if (!begun.order.empty() && !begun.group->AnyHealthy()) {
    broken.Increment();
    // A client gets a stale answer at once rather than after five seconds.
    if (Cache::Hit stale = cache.FindStale(question); stale.answer) {
      for (Done& waiting : std::exchange(begun.waiting, {})) waiting({stale.answer, stale.age, true});
    }
  }
  TryNext(begun);
}

void Forwarder::State::TryNext(Flight& flight) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout -
                                                                    (clock.SteadyNow() - flight.start));
  // Each server twice, for a packet may be lost.
  if (flight.tried >= 2 * flight.order.size() || left.count() <= 0) return GiveUp(flight);
  std::shared_ptr<Upstream> upstream = flight.order[flight.tried++ % flight.order.size()];
  flight.try_start = clock.SteadyNow();
  flight.exchange =
      Exchange::Start(*loop, upstream->server(), flight.question, std::min(left, options.try_timeout),
                      [this, &flight, upstream](Result<StoredAnswer> answer) {
                        OnAnswer(flight, *upstream, std::move(answer));
                      });
}

void Forwarder::State::OnAnswer(Flight& flight, Upstream& upstream, Result<StoredAnswer> answer) {
  upstream.Count(answer ? static_cast<int>(answer->rcode) : -1, clock.SteadyNow() - flight.try_start);
  if (!answer) return TryNext(flight);
  auto stored = std::make_shared<const StoredAnswer>(std::move(*answer));
  if (stored->rcode != Rcode::kNoError && stored->rcode != Rcode::kNxDomain) {
    flight.refusal = std::move(stored);
    if (flight.tried < flight.order.size()) return TryNext(flight);
    return GiveUp(flight);
  }
  cache.Put(flight.question, stored);
  Finish(flight, {stored});
}

void Forwarder::State::GiveUp(Flight& flight) {
  Cache::Hit stale = cache.FindStale(flight.question);
  if (stale.answer) return Finish(flight, {stale.answer, stale.age, true});
  Finish(flight, {flight.refusal});
}

void Forwarder::State::Finish(Flight& flight, const Resolved& resolved) {
  auto found = flights.find(flight.question);
  std::unique_ptr<Flight> owned = std::move(found->second);
  flights.erase(found);
  for (Done& done : owned->waiting) done(resolved);
}

void Forwarder::State::Stop() {
  stopped = true;
  file_timer.reset();
  loops.reset();
  for (auto& [question, flight] : std::exchange(flights, {})) {
    for (Done& done : flight->waiting) done({});
  }
  groups.clear();
}

Result<std::unique_ptr<Forwarder>> Forwarder::Create(ForwarderOptions options,
                                                     std::shared_ptr<event::Loop> loop, Clock& clock) {
  auto state = std::make_shared<State>(std::move(options), loop, clock);
  std::promise<Result<>> started;
  loop->Post([&] {
    Result<> init = state->Init();
    if (init) {
      state->Start();
    } else {
      state->Stop();
    }
    started.set_value(std::move(init));
  });
  KEELSON_RETURN_IF_ERROR(started.get_future().get());
  return std::unique_ptr<Forwarder>(new Forwarder(std::move(state)));
}

Forwarder::~Forwarder() {
  std::promise<void> stopped;
  state_->loop->Post([&] {
    state_->Stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
}

void Forwarder::Resolve(const Question& question, Done done) {
  if (Cache::Hit hit = state_->cache.Find(question); hit.answer) return done({hit.answer, hit.age});
  state_->loop->Post([state = state_, question, done = std::move(done)]() mutable {
    state->Begin(question, std::move(done));
  });
}

}  // namespace keelson::proxy::dns
