#include "controlplane/apiserver/flowcontrol/controller.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "lib/base/metrics.h"

namespace keelson::apiserver::flowcontrol {
namespace {

namespace v1 = api::flowcontrol::v1;
using Work = Controller::Work;

struct Metrics {
  metrics::Family& rejected = metrics::Counter("apiserver_flowcontrol_rejected_requests_total",
                                               "Requests refused by priority and fairness.",
                                               {"flow_schema", "priority_level", "reason"});
  metrics::Family& dispatched =
      metrics::Counter("apiserver_flowcontrol_dispatched_requests_total", "Requests that were given a seat.",
                       {"flow_schema", "priority_level"});
  metrics::Family& in_queue =
      metrics::Gauge("apiserver_flowcontrol_current_inqueue_requests", "Requests that wait for a seat.",
                     {"flow_schema", "priority_level"});
  metrics::Family& executing =
      metrics::Gauge("apiserver_flowcontrol_current_executing_requests", "Requests that have a seat.",
                     {"flow_schema", "priority_level"});
  metrics::Family& waited = metrics::Histograms("apiserver_flowcontrol_request_wait_duration_seconds",
                                                "Time until a seat, or refusal.",
                                                {0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30},
                                                {"flow_schema", "priority_level", "execute"});
  metrics::Family& nominal = metrics::Gauge("apiserver_flowcontrol_nominal_limit_seats",
                                            "Seats that a level has of its own.", {"priority_level"});
  metrics::Family& lower = metrics::Gauge("apiserver_flowcontrol_lower_limit_seats",
                                          "Seats that a level lends to nobody.", {"priority_level"});
  metrics::Family& upper =
      metrics::Gauge("apiserver_flowcontrol_upper_limit_seats",
                     "Seats that a level has with all that it may borrow.", {"priority_level"});
};

Metrics& Meters() {
  static Metrics metrics;
  return metrics;
}

struct Waiter {
  Classified who;
  Work run, refuse;
  SteadyTime since;
};

struct Queue {
  std::deque<Waiter> waiters;
  double turn = 0;  // virtual time at which its first is due
};

struct Level {
  std::string name, uid;
  bool exempt = false, known = true;  // known: its object is there
  int nominal = 0, lendable = 0;
  std::optional<int> borrowing;  // at most so many; none: any number
  int shares = 0, lendable_percent = 0, hand_size = 0;
  std::optional<int> borrowing_percent;
  size_t queue_length = 0;
  std::vector<Queue> queues;
  int executing = 0;
  size_t waiting = 0;
  double now = 0;  // virtual
};

}  // namespace

std::vector<int> DealHand(uint64_t hash, int queues, int hand_size) {
  std::vector<int> hand;
  for (int dealt = 0; dealt < hand_size && dealt < queues; ++dealt) {
    const auto left = static_cast<uint64_t>(queues - dealt);
    int card = static_cast<int>(hash % left);
    hash /= left;
    // The card's place among those that are still there.
    std::vector<int> sorted = hand;
    std::sort(sorted.begin(), sorted.end());
    for (int taken : sorted) {
      if (taken <= card) ++card;
    }
    hand.push_back(card);
  }
  return hand;
}

struct Controller::Impl {
  const Options options;
  Clock& clock;
  Matcher matcher;
  mutable Mutex mutex;
  CondVar changed;
  std::map<std::string, std::unique_ptr<Level>> levels GUARDED_BY(mutex);

  Impl(Options given, Clock& the_clock) : options(given), clock(the_clock) {}

  // Shares into seats, whenever a level comes, goes or changes.
  void Divide() REQUIRES(mutex) {
    int total = 0;
    for (const auto& [name, level] : levels) total += level->shares;
    for (auto& [name, level] : levels) {
      level->nominal =
          total == 0 ? 0 : static_cast<int>(std::ceil(double(options.seats) * level->shares / total));
      level->lendable = static_cast<int>(std::lround(level->nominal * level->lendable_percent / 100.0));
      level->borrowing.reset();
      if (level->borrowing_percent)
        level->borrowing = static_cast<int>(std::lround(level->nominal * *level->borrowing_percent / 100.0));
      int more = options.seats - level->nominal;
      Meters().nominal.With({name}).Set(level->nominal);
      Meters().lower.With({name}).Set(level->nominal - level->lendable);
      Meters().upper.With({name}).Set(level->nominal + std::min(more, level->borrowing.value_or(more)));
    }
  }

  bool HasSeat(const Level& level) const REQUIRES(mutex) {
    if (level.executing < level.nominal) return true;
    if (level.borrowing && level.executing >= level.nominal + *level.borrowing) return false;
    int idle = 0, borrowed = 0;
    for (const auto& [name, other] : levels) {
      if (other->exempt) continue;
      borrowed += std::max(0, other->executing - other->nominal);
      if (other.get() != &level)
        idle += std::min(other->lendable, std::max(0, other->nominal - other->executing));
    }
    return borrowed < idle;
  }

  // The level's waiter whose turn it is. There is one.
  Waiter Next(Level& level) REQUIRES(mutex) {
    Queue* best = nullptr;
    for (Queue& queue : level.queues) {
      if (!queue.waiters.empty() && (!best || queue.turn < best->turn)) best = &queue;
    }
    Waiter waiter = std::move(best->waiters.front());
    best->waiters.pop_front();
    level.now = std::max(level.now, best->turn);
    best->turn += 1;
    --level.waiting;
    Meters().in_queue.With({waiter.who.schema, waiter.who.level}).Add(-1);
    return waiter;
  }

  void Seat(Level& level, const Classified& who, SteadyTime since) REQUIRES(mutex) {
    ++level.executing;
    Meters().dispatched.With({who.schema, who.level}).Increment();
    Meters().executing.With({who.schema, who.level}).Add(1);
    Meters()
        .waited.HistogramWith({who.schema, who.level, "true"})
        .Observe(std::chrono::duration<double>(clock.SteadyNow() - since).count());
  }

  // Gives the seat back; somebody who can go on now, of this level if possible.
  std::optional<Waiter> Leave(const Classified& who) {
    MutexLock lock(mutex);
    Meters().executing.With({who.schema, who.level}).Add(-1);
    auto own = levels.find(who.level);
    Level* first = own == levels.end() ? nullptr : own->second.get();
    if (first) --first->executing;
    std::optional<Waiter> next;
    auto take = [&](Level& level) REQUIRES(mutex) {
      if (next || level.waiting == 0 || !HasSeat(level)) return;
      next = Next(level);
      Seat(level, next->who, next->since);
    };
    if (first) take(*first);
    for (auto& [name, level] : levels) take(*level);
    if (first && !first->known && first->executing == 0 && first->waiting == 0) levels.erase(own);
    return next;
  }

  void RunWithSeat(Classified who, Work run) {
    while (true) {
      run(who);
      std::optional<Waiter> next = Leave(who);
      if (!next) return;
      who = std::move(next->who);
      run = std::move(next->run);
    }
  }

  Queue& Shortest(Level& level, uint64_t hash) REQUIRES(mutex) {
    Queue* best = nullptr;
    for (int index : DealHand(hash, static_cast<int>(level.queues.size()), level.hand_size)) {
      Queue& queue = level.queues[static_cast<size_t>(index)];
      if (!best || queue.waiters.size() < best->waiters.size()) best = &queue;
    }
    return *best;
  }
};

Controller::Controller(Options options, Clock& clock) : impl_(std::make_unique<Impl>(options, clock)) {}
Controller::~Controller() = default;

void Controller::Put(FlowSchemaPtr schema) { impl_->matcher.Put(std::move(schema)); }
void Controller::RemoveSchema(const std::string& name) { impl_->matcher.Remove(name); }

void Controller::Put(LevelPtr object) {
  MutexLock lock(impl_->mutex);
  std::unique_ptr<Level>& slot = impl_->levels[object->metadata().name()];
  if (!slot) slot = std::make_unique<Level>();
  Level& level = *slot;
  const v1::PriorityLevelConfigurationSpec& spec = object->spec();
  level.name = object->metadata().name();
  level.uid = object->metadata().uid();
  level.known = true;
  level.exempt = spec.type() == "Exempt";
  level.borrowing_percent.reset();
  if (level.exempt) {
    level.shares = spec.exempt().nominal_concurrency_shares();
    level.lendable_percent = spec.exempt().lendable_percent();
  } else {
    const v1::LimitedPriorityLevelConfiguration& limited = spec.limited();
    level.shares = limited.nominal_concurrency_shares();
    level.lendable_percent = limited.lendable_percent();
    if (limited.has_borrowing_limit_percent()) level.borrowing_percent = limited.borrowing_limit_percent();
    const v1::QueuingConfiguration& queuing = limited.limit_response().queuing();
    bool queues = limited.limit_response().type() == "Queue";
    level.hand_size = std::max(1, queuing.hand_size());
    level.queue_length = static_cast<size_t>(std::max(1, queuing.queue_length_limit()));
    // Who waits keeps his place: queues are added at once and taken away when nobody waits.
    size_t wanted = queues ? static_cast<size_t>(std::max(1, queuing.queues())) : 0;
    if (wanted > level.queues.size() || level.waiting == 0) level.queues.resize(wanted);
  }
  impl_->Divide();
}

void Controller::RemoveLevel(const std::string& name) {
  MutexLock lock(impl_->mutex);
  auto found = impl_->levels.find(name);
  if (found == impl_->levels.end()) return;
  if (found->second->executing == 0 && found->second->waiting == 0) {
    impl_->levels.erase(found);
  } else {
    found->second->known = false;
  }
  impl_->Divide();
}

void Controller::Handle(const User& user, const RequestInfo& request, Work run, Work refuse) {
  FlowSchemaPtr schema = impl_->matcher.Find(user, request);
  Classified who;
  const char* reason = nullptr;
  {
    MutexLock lock(impl_->mutex);
    auto found = impl_->levels.end();
    if (schema) found = impl_->levels.find(schema->spec().priority_level_configuration().name());
    // Before the objects have been read, and with dangling schemas, nothing is kept out.
    Level* level = found == impl_->levels.end() ? nullptr : found->second.get();
    if (schema) {
      who.schema = schema->metadata().name();
      who.schema_uid = schema->metadata().uid();
    }
    if (level) {
      who.level = level->name;
      who.level_uid = level->uid;
    }
    const SteadyTime now = impl_->clock.SteadyNow();
    if (!level) {
    } else if (level->exempt || (level->waiting == 0 && impl_->HasSeat(*level))) {
      impl_->Seat(*level, who, now);
    } else if (level->queues.empty()) {
      reason = "concurrency-limit";
    } else {
      Queue& queue = impl_->Shortest(*level, FlowHash(*schema, user, request));
      if (queue.waiters.size() >= level->queue_length) {
        reason = "queue-full";
      } else {
        if (queue.waiters.empty()) queue.turn = std::max(queue.turn, level->now);
        queue.waiters.push_back({who, std::move(run), std::move(refuse), now});
        ++level->waiting;
        Meters().in_queue.With({who.schema, who.level}).Add(1);
        return;
      }
    }
  }
  if (reason) {
    Meters().rejected.With({who.schema, who.level, reason}).Increment();
    return refuse(who);
  }
  if (who.level.empty()) return run(who);
  impl_->RunWithSeat(std::move(who), std::move(run));
}

void Controller::Run(std::stop_token stop) {
  constexpr std::chrono::milliseconds kPeriod{250};
  std::stop_callback on_stop(stop, [this] {
    MutexLock lock(impl_->mutex);
    impl_->changed.notify_all();
  });
  while (!stop.stop_requested()) {
    std::vector<Waiter> late;
    {
      MutexLock lock(impl_->mutex);
      const SteadyTime next = impl_->clock.SteadyNow() + kPeriod;
      while (!stop.stop_requested() && impl_->clock.SteadyNow() < next)
        impl_->clock.WaitUntil(impl_->mutex, impl_->changed, next);
      const SteadyTime limit = impl_->clock.SteadyNow() - impl_->options.max_wait;
      for (auto& [name, level] : impl_->levels) {
        for (Queue& queue : level->queues) {
          while (!queue.waiters.empty() && (stop.stop_requested() || queue.waiters.front().since <= limit)) {
            late.push_back(std::move(queue.waiters.front()));
            queue.waiters.pop_front();
            --level->waiting;
            Meters().in_queue.With({late.back().who.schema, name}).Add(-1);
          }
        }
      }
    }
    for (Waiter& waiter : late) {
      Meters().rejected.With({waiter.who.schema, waiter.who.level, "time-out"}).Increment();
      waiter.refuse(waiter.who);
    }
  }
}

}  // namespace keelson::apiserver::flowcontrol
