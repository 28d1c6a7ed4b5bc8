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

// Threads that dispatch waiting requests when no other request arrives or ends.
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
  std::map<std::string, std::unique_ptr<Level>> levels KEELSON_GUARDED_BY(mutex);
  std::multimap<SteadyTime, TicketPtr> parting
      KEELSON_GUARDED_BY(mutex);                 // executing; waiting for the release of their final seats
  bool stuck KEELSON_GUARDED_BY(mutex) = false;  // a waiting request could be dispatched

  Impl(Options given, Clock& the_clock)
      : options(std::move(given)), clock(the_clock), estimator(options.work) {}

  // Recomputes nominal seats when a level is added, removed or changed.
  void Divide() KEELSON_REQUIRES(mutex) {
    int total = 0;
    for (const auto& [name, level] : levels) total += level->shares;
    for (auto& [name, level] : levels) level->Divide(options.seats, total);
  }

  Level* Find(const std::string& name) const KEELSON_REQUIRES(mutex) {
    auto found = levels.find(name);
    return found == levels.end() ? nullptr : found->second.get();
  }

  // The level's seats plus idle lendable seats of others.
  int LimitOf(const Level& level) const KEELSON_REQUIRES(mutex) {
    int idle = 0;
    for (const auto& [name, other] : levels) {
      if (other->exempt || other.get() == &level) continue;
      idle += std::min(other->lendable, std::max(0, other->nominal - other->seats_in_use));
      idle -= std::max(0, other->seats_in_use - other->nominal);
    }
    return level.nominal + std::max(0, std::min(idle, level.borrowing.value_or(idle)));
  }

  // A request wider than the level may execute alone.
  bool HasSeats(const Level& level, int seats) const KEELSON_REQUIRES(mutex) {
    const int wanted = level.seats_in_use + seats;
    return wanted <= level.nominal || (level.seats_in_use == 0 && level.nominal > 0) ||
           wanted <= LimitOf(level);
  }

  // Returns the next request of the level that gets its seats; null: none.
  TicketPtr Dispatch(Level& level) KEELSON_REQUIRES(mutex) {
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
  TicketPtr DispatchAny() KEELSON_REQUIRES(mutex) {
    for (auto& [name, level] : levels) {
      if (TicketPtr next = Dispatch(*level)) return next;
    }
    return nullptr;
  }

  void ReleaseParted() KEELSON_REQUIRES(mutex) {
    const SteadyTime now = clock.SteadyNow();
    while (!parting.empty() && parting.begin()->first <= now) {
      const TicketPtr ticket = std::move(parting.begin()->second);
      parting.erase(parting.begin());
      if (Level* level = Find(ticket->who.level)) level->Release(*ticket);
      Forget(ticket->who.level);
    }
  }
  // A deleted level stays until its last request ends.
  void Forget(const std::string& name) KEELSON_REQUIRES(mutex) {
    Level* level = Find(name);
    if (level && !level->known && level->idle()) levels.erase(name);
  }
  bool SomebodyWaits() const KEELSON_REQUIRES(mutex) {
    return std::any_of(levels.begin(), levels.end(),
                       [](const auto& item) { return item.second->waiting > 0; });
  }

  // Releases the seats; returns the next request to dispatch, preferably of this level.
  TicketPtr Leave(const TicketPtr& ticket) {
    MutexLock lock(mutex);
    const SteadyTime now = clock.SteadyNow();
    Level* level = Find(ticket->who.level);  // the level exists while a request occupies its seats
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

  // Classifies a request; returns a ticket without estimate, and the maximum of seats. Null meters: no level
  // applies.
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

  // Returns nullptr when the request executes, or waits and `next` (may be null) can be dispatched; else the
  // rejection reason.
  const char* Place(const TicketPtr& ticket, uint64_t hash, TicketPtr& next) {
    MutexLock lock(mutex);
    ReleaseParted();
    Level* level = Find(ticket->who.level);
    if (!level) {  // just deleted: execute without a limit
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

  void Sample() KEELSON_REQUIRES(mutex) {
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

  // Waits until the next period, but releases final seats in time when requests wait.
  void Rest(std::stop_token stop) KEELSON_REQUIRES(mutex) {
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
        if (!hands_wanted.wait(mutex, stop, [this]() KEELSON_REQUIRES(mutex) { return stuck; })) return;
        next = DispatchAny();
        // One thread may not suffice to dispatch all of them.
        if (next) {
          hands_wanted.notify_one();
        } else {
          stuck = false;
        }
      }
      RunSeated(std::move(next));
    }
  }

  Levels All() const KEELSON_REQUIRES(mutex) {
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
  // Without loaded objects, or with a dangling schema, execute without a limit.
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
  for (int i = 0; i < kHands; ++i) {
    hands.emplace_back([this](std::stop_token token) { impl_->LendAHand(std::move(token)); });
  }
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
