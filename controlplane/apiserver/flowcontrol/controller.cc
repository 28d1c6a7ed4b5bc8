#include "controlplane/apiserver/flowcontrol/controller.h"

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "controlplane/apiserver/endpoints/request_metrics.h"
#include "controlplane/apiserver/flowcontrol/dump.h"

namespace keelson::apiserver::flowcontrol {
namespace {

// Threads that go on with who waits when nobody comes or leaves who would.
constexpr int kHands = 4;
constexpr std::chrono::milliseconds kPeriod{250};

bool Reads(const RequestInfo& request) {
  return !request.is_resource || request.verb == "get" || request.verb == "list" || request.verb == "watch";
}

}  // namespace

struct Controller::Impl {
  const Options options;
  Clock& clock;
  const WorkEstimator estimator;
  Matcher matcher;
  mutable Mutex mutex;
  CondVar changed, hands_wanted;
  std::map<std::string, std::unique_ptr<Level>> levels GUARDED_BY(mutex);
  std::multimap<SteadyTime, TicketPtr> parting
      GUARDED_BY(mutex);                 // answered; when their final seats are free
  bool stuck GUARDED_BY(mutex) = false;  // somebody waits who need not

  Impl(Options given, Clock& the_clock)
      : options(std::move(given)), clock(the_clock), estimator(options.work) {}

  // Shares into seats, whenever a level comes, goes or changes.
  void Divide() REQUIRES(mutex) {
    int total = 0;
    for (const auto& [name, level] : levels) total += level->shares;
    for (auto& [name, level] : levels) level->Divide(options.seats, total);
  }

  Level* Find(const std::string& name) const REQUIRES(mutex) {
    auto found = levels.find(name);
    return found == levels.end() ? nullptr : found->second.get();
  }

  // With what others do not use now and lend.
  int LimitOf(const Level& level) const REQUIRES(mutex) {
    int idle = 0;
    for (const auto& [name, other] : levels) {
      if (other->exempt || other.get() == &level) continue;
      idle += std::min(other->lendable, std::max(0, other->nominal - other->seats_in_use));
      idle -= std::max(0, other->seats_in_use - other->nominal);
    }
    return level.nominal + std::max(0, std::min(idle, level.borrowing.value_or(idle)));
  }

  // A request that is wider than the level goes when it is alone.
  bool HasSeats(const Level& level, int seats) const REQUIRES(mutex) {
    const int wanted = level.seats_in_use + seats;
    return wanted <= level.nominal || (level.seats_in_use == 0 && level.nominal > 0) ||
           wanted <= LimitOf(level);
  }

  // Whoever of the level can go on now, with his seats; null: nobody.
  TicketPtr Dispatch(Level& level) REQUIRES(mutex) {
    TicketPtr next = level.Next();
    if (!next) return nullptr;
    if (!HasSeats(level, next->work.MaxSeats())) {
      next->meters->no_accommodation.Increment();
      return nullptr;
    }
    level.Take();
    level.Sit(next, clock);
    return next;
  }
  TicketPtr DispatchAny() REQUIRES(mutex) {
    for (auto& [name, level] : levels) {
      if (TicketPtr next = Dispatch(*level)) return next;
    }
    return nullptr;
  }

  void ReleaseParted() REQUIRES(mutex) {
    const SteadyTime now = clock.SteadyNow();
    while (!parting.empty() && parting.begin()->first <= now) {
      const TicketPtr ticket = std::move(parting.begin()->second);
      parting.erase(parting.begin());
      if (Level* level = Find(ticket->who.level)) level->Release(*ticket);
      Forget(ticket->who.level);
    }
  }
  // A level that was deleted is there until its last request is over.
  void Forget(const std::string& name) REQUIRES(mutex) {
    Level* level = Find(name);
    if (level && !level->known && level->idle()) levels.erase(name);
  }
  bool SomebodyWaits() const REQUIRES(mutex) {
    return std::any_of(levels.begin(), levels.end(),
                       [](const auto& item) { return item.second->waiting > 0; });
  }

  // Gives the seats back; somebody who can go on now, of this level if possible.
  TicketPtr Leave(const TicketPtr& ticket) {
    MutexLock lock(mutex);
    const SteadyTime now = clock.SteadyNow();
    Level* level = Find(ticket->who.level);  // it is there as long as somebody sits in it
    level->Leave(ticket, now);
    if (ticket->work.final_seats > 0) {
      ticket->run = ticket->refuse = nullptr;
      parting.emplace(now + ticket->work.additional, ticket);
      if (SomebodyWaits()) changed.notify_all();
    }
    ReleaseParted();
    TicketPtr next;
    if ((level = Find(ticket->who.level))) next = Dispatch(*level);
    if (!next) next = DispatchAny();
    Forget(ticket->who.level);
    return next;
  }

  void RunSeated(TicketPtr ticket) {
    while (ticket) {
      ticket->run(ticket->who);
      ticket = Leave(ticket);
    }
  }

  // Where it belongs: a ticket without an estimate, and the most seats that it may have. Null meters: to no
  // level.
  TicketPtr Classify(const FlowSchemaPtr& schema, int& max_seats, bool& exempt) {
    auto ticket = std::make_shared<Ticket>();
    if (!schema) return ticket;
    ticket->who.schema = schema->metadata().name();
    ticket->who.schema_uid = schema->metadata().uid();
    MutexLock lock(mutex);
    Level* level = Find(schema->spec().priority_level_configuration().name());
    if (!level) return ticket;
    ticket->who.level = level->name;
    ticket->who.level_uid = level->uid;
    ticket->meters = level->MetersOf(ticket->who.schema);
    max_seats = level->max_seats;
    exempt = level->exempt;
    return ticket;
  }

  // nullptr: it sits, or waits and `next` (which may be null) can go on; else why it is refused.
  const char* Place(const TicketPtr& ticket, uint64_t hash, TicketPtr& next) {
    MutexLock lock(mutex);
    ReleaseParted();
    Level* level = Find(ticket->who.level);
    if (!level) {  // deleted just now: nothing is kept out
      ticket->who.level.clear();
      next = ticket;
      return nullptr;
    }
    if (level->exempt || (level->waiting == 0 && HasSeats(*level, ticket->work.MaxSeats()))) {
      level->Sit(ticket, clock);
      next = ticket;
      return nullptr;
    }
    if (!level->queues.empty() && level->Enqueue(ticket, hash)) {
      if (!parting.empty()) changed.notify_all();
      next = Dispatch(*level);
      return nullptr;
    }
    ++level->rejected;
    return level->queues.empty() ? "concurrency-limit" : "queue-full";
  }

  void Sample() REQUIRES(mutex) {
    double reads = 0, writes = 0, late_reads = 0, late_writes = 0, places = 0;
    for (auto& [name, level] : levels) {
      level->Sample(LimitOf(*level));
      for (const TicketPtr& ticket : level->executing) ++(Reads(ticket->request) ? reads : writes);
      places += static_cast<double>(level->queues.size() * level->queue_length);
      for (const Level::Queue& queue : level->queues) {
        for (const TicketPtr& ticket : queue.waiters) ++(Reads(ticket->request) ? late_reads : late_writes);
      }
    }
    TellWaiting(late_reads, late_writes);
    const double seats = std::max(1, options.seats);
    places = std::max(1.0, places);
    ObserveReadsAndWrites(reads / seats, writes / seats, late_reads / places, late_writes / places);
  }

  // Until the next period, but giving back seats that somebody waits for meanwhile.
  void Rest(std::stop_token stop) REQUIRES(mutex) {
    const SteadyTime end = clock.SteadyNow() + kPeriod;
    while (!stop.stop_requested() && clock.SteadyNow() < end) {
      ReleaseParted();
      const bool waits = SomebodyWaits();
      if (waits && !std::exchange(stuck, true)) hands_wanted.notify_one();
      clock.WaitUntil(mutex, changed,
                      waits && !parting.empty() ? std::min(end, parting.begin()->first) : end);
    }
  }

  void LendAHand(std::stop_token stop) {
    while (true) {
      TicketPtr next;
      {
        MutexLock lock(mutex);
        if (!hands_wanted.wait(mutex, stop, [this]() REQUIRES(mutex) { return stuck; })) return;
        next = DispatchAny();
        // There may be more of them than one thread gets on with.
        if (next)
          hands_wanted.notify_one();
        else
          stuck = false;
      }
      RunSeated(std::move(next));
    }
  }

  Levels All() const REQUIRES(mutex) {
    Levels all;
    for (const auto& [name, level] : levels) all.push_back(level.get());
    return all;
  }
};

Controller::Controller(Options options, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), clock)) {}
Controller::~Controller() = default;

void Controller::Put(FlowSchemaPtr schema) { impl_->matcher.Put(std::move(schema)); }
void Controller::RemoveSchema(const std::string& name) { impl_->matcher.Remove(name); }

void Controller::Put(LevelPtr object) {
  MutexLock lock(impl_->mutex);
  std::unique_ptr<Level>& slot = impl_->levels[object->metadata().name()];
  if (!slot) slot = std::make_unique<Level>(object->metadata().name());
  slot->Configure(*object);
  impl_->Divide();
}

void Controller::RemoveLevel(const std::string& name) {
  MutexLock lock(impl_->mutex);
  Level* level = impl_->Find(name);
  if (!level) return;
  level->known = false;
  impl_->Forget(name);
  impl_->Divide();
}

void Controller::Handle(const User& user, const RequestInfo& request, const http::Query& query, Work run,
                        Work refuse) {
  FlowSchemaPtr schema = impl_->matcher.Find(user, request);
  int max_seats = 0;
  bool exempt = false;
  TicketPtr ticket = impl_->Classify(schema, max_seats, exempt);
  // Before the objects have been read, and with dangling schemas, nothing is kept out.
  if (!ticket->meters) return run(ticket->who);
  ticket->run = std::move(run);
  ticket->refuse = std::move(refuse);
  ticket->user = user.name;
  ticket->request = request;
  ticket->since = impl_->clock.SteadyNow();
  ticket->arrived = impl_->clock.Now();
  if (!exempt) ticket->work = impl_->estimator.Estimate(request, query, max_seats);
  ticket->flow = FlowOf(*schema, user, request);
  TicketPtr next;
  if (const char* reason = impl_->Place(ticket, FlowHash(*schema, ticket->flow), next)) {
    ticket->meters->Reject(reason);
    return ticket->refuse(ticket->who);
  }
  if (next && next->who.level.empty()) return next->run(next->who);
  impl_->RunSeated(std::move(next));
}

void Controller::Run(std::stop_token stop) {
  std::vector<std::jthread> hands;
  for (int i = 0; i < kHands; ++i)
    hands.emplace_back([this](std::stop_token token) { impl_->LendAHand(std::move(token)); });
  std::stop_callback on_stop(stop, [this] {
    MutexLock lock(impl_->mutex);
    impl_->changed.notify_all();
  });
  while (!stop.stop_requested()) {
    std::vector<TicketPtr> late;
    {
      MutexLock lock(impl_->mutex);
      impl_->Rest(stop);
      impl_->Sample();
      std::optional<SteadyTime> limit;
      if (!stop.stop_requested()) limit = impl_->clock.SteadyNow() - impl_->options.max_wait;
      for (auto& [name, level] : impl_->levels) {
        for (TicketPtr& ticket : level->TakeLate(limit)) late.push_back(std::move(ticket));
      }
    }
    for (const TicketPtr& ticket : late) {
      ticket->meters->Reject("time-out");
      ticket->meters->waited_in_vain.Observe(
          std::chrono::duration<double>(impl_->clock.SteadyNow() - ticket->since).count());
      ticket->refuse(ticket->who);
    }
  }
}

std::string Controller::DumpLevels() const {
  MutexLock lock(impl_->mutex);
  return LevelsTable(impl_->All());
}

std::string Controller::DumpQueues() const {
  MutexLock lock(impl_->mutex);
  return QueuesTable(impl_->All());
}

std::string Controller::DumpRequests(bool details) const {
  MutexLock lock(impl_->mutex);
  return RequestsTable(impl_->All(), details);
}

}  // namespace keelson::apiserver::flowcontrol
