// One priority level: its seats, its queues, and who sits and waits there. Not thread safe; the controller,
// which knows what levels lend each other, guards it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "controlplane/apiserver/flowcontrol/meters.h"
#include "controlplane/apiserver/flowcontrol/work.h"
#include "controlplane/apiserver/request/request_info.h"
#include "lib/api/proto/flowcontrol_v1.pb.h"
#include "lib/base/clock.h"

namespace keelson::apiserver::flowcontrol {

using LevelPtr = std::shared_ptr<const api::flowcontrol::v1::PriorityLevelConfiguration>;

// How a request was classified: UIDs are what the reply's headers tell.
struct Classified {
  std::string schema, schema_uid, level, level_uid;
};

using Work = std::function<void(const Classified&)>;

// A request from its arrival until its last seat is given back.
struct Ticket {
  Classified who;
  Work run, refuse;
  WorkEstimate work;
  std::shared_ptr<FlowMeters> meters;
  SteadyTime since, seated;
  // For people who look at it.
  std::string user, flow;
  RequestInfo request;
  WallTime arrived, started{};
  int queue = -1;
};
using TicketPtr = std::shared_ptr<Ticket>;

// `hand_size` different queues of `queues`, as the hash deals them.
std::vector<int> DealHand(uint64_t hash, int queues, int hand_size);

class Level {
 public:
  explicit Level(std::string name) : name(std::move(name)), meters(this->name) {}

  void Configure(const api::flowcontrol::v1::PriorityLevelConfiguration& object);
  // Its part of `seats`, where all levels have `total_shares`.
  void Divide(int seats, int total_shares);
  std::shared_ptr<FlowMeters> MetersOf(const std::string& schema);

  // false: the queue that it would be in is full.
  bool Enqueue(TicketPtr ticket, uint64_t hash);
  // Whose turn it is; null: nobody waits. Take() takes that one from its queue.
  TicketPtr Next() const;
  TicketPtr Take();
  // Those that have waited since `limit`, or all.
  std::vector<TicketPtr> TakeLate(std::optional<SteadyTime> limit);

  void Sit(const TicketPtr& ticket, const Clock& clock);
  // The final seats, if there are any, are still taken, until Release().
  void Leave(const TicketPtr& ticket, SteadyTime now);
  void Release(const Ticket& ticket);

  // What is seen now is one sample of what the meters tell; `limit`: seats with what can be borrowed.
  void Sample(int limit);

  bool idle() const { return seats_in_use == 0 && waiting == 0; }

  struct Queue {
    std::deque<TicketPtr> waiters;
    double turn = 0;  // virtual time at which its first is due, in seat-seconds
    int executing = 0, seats_in_use = 0;
  };

  const std::string name;
  std::string uid;
  bool exempt = false, known = true;  // known: its object is there
  int nominal = 0, lendable = 0;
  std::optional<int> borrowing;  // at most so many; none: any number
  int shares = 0, hand_size = 0;
  size_t queue_length = 0;
  std::vector<Queue> queues;
  int max_seats = 0;  // of one request; 0: any number
  int seats_in_use = 0, seats_wanted = 0;
  size_t waiting = 0;
  std::unordered_set<TicketPtr> executing;
  uint64_t dispatched = 0, rejected = 0, timed_out = 0;
  LevelMeters meters;

 private:
  int Due() const;  // the queue whose turn it is; -1: none
  void PublishDemand();

  int lendable_percent_ = 0;
  std::optional<int> borrowing_percent_;
  double now_ = 0;  // virtual
  std::map<std::string, std::shared_ptr<FlowMeters>> flows_;
  // Demand since it was told last.
  int samples_ = 0, demand_high_ = 0;
  double demand_sum_ = 0, demand_squares_ = 0, demand_smoothed_ = 0;
};

}  // namespace keelson::apiserver::flowcontrol
