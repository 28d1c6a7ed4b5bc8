// One priority level: its seats, queues, and requests. Not thread safe; the Controller guards it, and handles
// borrowing.
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

// The classification of a request. The UIDs go into response headers.
struct Classified {
  std::string schema, schema_uid, level, level_uid;
};

using Work = std::function<void(const Classified&)>;

// A request from its arrival until it releases its last seat.
struct Ticket {
  Classified who;
  Work run, refuse;
  WorkEstimate work;
  std::shared_ptr<FlowMeters> meters;
  SteadyTime since, seated;
  // For the debug endpoints.
  std::string user, flow;
  RequestInfo request;
  WallTime arrived, started{};
  int queue = -1;
};
using TicketPtr = std::shared_ptr<Ticket>;

// Shuffle sharding: `hand_size` distinct queues out of `queues`, from the hash.
std::vector<int> DealHand(uint64_t hash, int queues, int hand_size);

class Level {
 public:
  explicit Level(std::string name) : name(std::move(name)), meters(this->name) {}

  void Configure(const api::flowcontrol::v1::PriorityLevelConfiguration& object);
  // Sets the nominal seats: the level's share of `seats`, given `total_shares` of all levels.
  void Divide(int seats, int total_shares);
  std::shared_ptr<FlowMeters> MetersOf(const std::string& schema);

  // Returns false when the queue is full.
  bool Enqueue(TicketPtr ticket, uint64_t hash);
  // Next(): the request to dispatch next; null: none waits. Take() also removes it from its queue.
  TicketPtr Next() const;
  TicketPtr Take();
  // Removes and returns the requests that have waited since `limit`, or all requests.
  std::vector<TicketPtr> TakeLate(std::optional<SteadyTime> limit);

  void Sit(const TicketPtr& ticket, const Clock& clock);
  // Ends the execution. The final seats, if any, stay in use until Release().
  void Leave(const TicketPtr& ticket, SteadyTime now);
  void Release(const Ticket& ticket);

  // Samples the current state for the metrics. `limit`: seats including those that can be borrowed.
  void Sample(int limit);

  bool idle() const { return seats_in_use == 0 && waiting == 0; }

  struct Queue {
    std::deque<TicketPtr> waiters;
    double turn = 0;  // virtual time when its first request is due, in seat-seconds
    int executing = 0, seats_in_use = 0;
  };

  const std::string name;
  std::string uid;
  bool exempt = false, known = true;  // known: the PriorityLevelConfiguration exists
  int nominal = 0, lendable = 0;
  std::optional<int> borrowing;  // maximum; none: unlimited
  int shares = 0, hand_size = 0;
  size_t queue_length = 0;
  std::vector<Queue> queues;
  int max_seats = 0;  // of one request; 0: unlimited
  int seats_in_use = 0, seats_wanted = 0;
  size_t waiting = 0;
  std::unordered_set<TicketPtr> executing;
  uint64_t dispatched = 0, rejected = 0, timed_out = 0;
  LevelMeters meters;

 private:
  int Due() const;  // the next queue to dispatch from; -1: none
  void PublishDemand();

  int lendable_percent_ = 0;
  std::optional<int> borrowing_percent_;
  double now_ = 0;  // virtual time
  std::map<std::string, std::shared_ptr<FlowMeters>> flows_;
  // Demand since the last publication.
  int samples_ = 0, demand_high_ = 0;
  double demand_sum_ = 0, demand_squares_ = 0, demand_smoothed_ = 0;
};

}  // namespace keelson::apiserver::flowcontrol
