#include "controlplane/apiserver/flowcontrol/level.h"

#include <algorithm>
#include <cmath>

namespace keelson::apiserver::flowcontrol {
namespace {

namespace v1 = api::flowcontrol::v1;

constexpr int kSamplesTold = 40;
// The smoothing factor for falling demand.
constexpr double kSmoothing = 0.977;

double SecondsSince(SteadyTime then, SteadyTime now) {
  return std::chrono::duration<double>(now - then).count();
}

}  // namespace

std::vector<int> DealHand(uint64_t hash, int queues, int hand_size) {
  std::vector<int> hand;
  for (int dealt = 0; dealt < hand_size && dealt < queues; ++dealt) {
    const auto left = static_cast<uint64_t>(queues - dealt);
    int card = static_cast<int>(hash % left);
    hash /= left;
    // The position of the card among the remaining ones.
    std::vector<int> sorted = hand;
    std::sort(sorted.begin(), sorted.end());
    for (int taken : sorted) {
      if (taken <= card) ++card;
    }
    hand.push_back(card);
  }
  return hand;
}

void Level::Configure(const v1::PriorityLevelConfiguration& object) {
  const v1::PriorityLevelConfigurationSpec& spec = object.spec();
  uid = object.metadata().uid();
  known = true;
  exempt = spec.type() == "Exempt";
  borrowing_percent_.reset();
  if (exempt) {
    shares = spec.exempt().nominal_concurrency_shares();
    lendable_percent_ = spec.exempt().lendable_percent();
    return;
  }
  const v1::LimitedPriorityLevelConfiguration& limited = spec.limited();
  shares = limited.nominal_concurrency_shares();
  lendable_percent_ = limited.lendable_percent();
  if (limited.has_borrowing_limit_percent()) borrowing_percent_ = limited.borrowing_limit_percent();
  const v1::QueuingConfiguration& queuing = limited.limit_response().queuing();
  const bool has_queues = limited.limit_response().type() == "Queue";
  hand_size = has_queues ? std::max(1, queuing.hand_size()) : 0;
  queue_length = static_cast<size_t>(std::max(1, queuing.queue_length_limit()));
  // Waiting requests keep their queue: queues are added immediately, and removed when empty.
  size_t wanted = has_queues ? static_cast<size_t>(std::max(1, queuing.queues())) : 0;
  if (wanted > queues.size() || idle()) queues.resize(wanted);
}

void Level::Divide(int seats, int total_shares) {
  nominal = total_shares == 0 ? 0 : static_cast<int>(std::ceil(double(seats) * shares / total_shares));
  lendable = static_cast<int>(std::lround(nominal * lendable_percent_ / 100.0));
  borrowing.reset();
  if (borrowing_percent_) borrowing = static_cast<int>(std::lround(nominal * *borrowing_percent_ / 100.0));
  max_seats = exempt ? 0 : MaxSeatsOf(nominal, hand_size);
  const int more = seats - nominal;
  meters.nominal.Set(nominal);
  meters.lower.Set(nominal - lendable);
  meters.upper.Set(nominal + std::min(more, borrowing.value_or(more)));
}

std::shared_ptr<FlowMeters> Level::MetersOf(const std::string& schema) {
  std::shared_ptr<FlowMeters>& flow = flows_[schema];
  if (!flow) flow = std::make_shared<FlowMeters>(name, schema);
  return flow;
}

bool Level::Enqueue(TicketPtr ticket, uint64_t hash) {
  int best = -1;
  for (int index : DealHand(hash, static_cast<int>(queues.size()), hand_size)) {
    if (best < 0 || queues[size_t(index)].waiters.size() < queues[size_t(best)].waiters.size()) best = index;
  }
  Queue& queue = queues[size_t(best)];
  if (queue.waiters.size() >= queue_length) return false;
  if (queue.waiters.empty()) queue.turn = std::max(queue.turn, now_);
  ticket->queue = best;
  ++waiting;
  seats_wanted += ticket->work.MaxSeats();
  ticket->meters->waiting.Add(1);
  ticket->meters->waiting_seats.Add(ticket->work.MaxSeats());
  ticket->meters->queue_length.Observe(static_cast<double>(queue.waiters.size() + 1));
  queue.waiters.push_back(std::move(ticket));
  return true;
}

int Level::Due() const {
  int best = -1;
  if (waiting == 0) return best;
  for (size_t i = 0; i < queues.size(); ++i) {
    if (queues[i].waiters.empty()) continue;
    if (best < 0 || queues[i].turn < queues[size_t(best)].turn) best = static_cast<int>(i);
  }
  return best;
}

TicketPtr Level::Next() const {
  const int due = Due();
  return due < 0 ? nullptr : queues[size_t(due)].waiters.front();
}

TicketPtr Level::Take() {
  Queue& due = queues[size_t(Due())];
  TicketPtr ticket = std::move(due.waiters.front());
  due.waiters.pop_front();
  now_ = std::max(now_, due.turn);
  meters.dispatch_r.Set(now_);
  meters.latest_s.Set(due.turn);
  due.turn += ticket->work.SeatSeconds();
  --waiting;
  seats_wanted -= ticket->work.MaxSeats();
  ticket->meters->waiting.Add(-1);
  ticket->meters->waiting_seats.Add(-ticket->work.MaxSeats());
  return ticket;
}

std::vector<TicketPtr> Level::TakeLate(std::optional<SteadyTime> limit) {
  std::vector<TicketPtr> late;
  for (Queue& queue : queues) {
    while (!queue.waiters.empty() && (!limit || queue.waiters.front()->since <= *limit)) {
      TicketPtr ticket = std::move(queue.waiters.front());
      queue.waiters.pop_front();
      --waiting;
      ++timed_out;
      seats_wanted -= ticket->work.MaxSeats();
      ticket->meters->waiting.Add(-1);
      ticket->meters->waiting_seats.Add(-ticket->work.MaxSeats());
      late.push_back(std::move(ticket));
    }
  }
  return late;
}

void Level::Sit(const TicketPtr& ticket, const Clock& clock) {
  ticket->seated = clock.SteadyNow();
  ticket->started = clock.Now();
  const int seats = ticket->work.MaxSeats();
  seats_in_use += seats;
  ++dispatched;
  executing.insert(ticket);
  if (ticket->queue >= 0) {
    ++queues[size_t(ticket->queue)].executing;
    queues[size_t(ticket->queue)].seats_in_use += seats;
  }
  FlowMeters& flow = *ticket->meters;
  flow.dispatched.Increment();
  flow.executing.Add(1);
  flow.executing_seats.Add(seats);
  flow.waited.Observe(SecondsSince(ticket->since, ticket->seated));
  flow.estimated.Observe(seats);
  if (ticket->work.watchers >= 0) flow.watchers.Observe(ticket->work.watchers);
}

void Level::Leave(const TicketPtr& ticket, SteadyTime now) {
  const int given_back = ticket->work.MaxSeats() - ticket->work.final_seats;
  seats_in_use -= given_back;
  executing.erase(ticket);
  if (ticket->queue >= 0) {
    --queues[size_t(ticket->queue)].executing;
    queues[size_t(ticket->queue)].seats_in_use -= given_back;
  }
  FlowMeters& flow = *ticket->meters;
  flow.executing.Add(-1);
  flow.executing_seats.Add(-given_back);
  (ticket->request.verb == "watch" ? flow.took_watch : flow.took).Observe(SecondsSince(ticket->seated, now));
}

void Level::Release(const Ticket& ticket) {
  seats_in_use -= ticket.work.final_seats;
  if (ticket.queue >= 0) queues[size_t(ticket.queue)].seats_in_use -= ticket.work.final_seats;
  ticket.meters->executing_seats.Add(-ticket.work.final_seats);
}

void Level::Sample(int limit) {
  const double places = static_cast<double>(queues.size() * queue_length);
  meters.current.Set(limit);
  meters.current_r.Set(now_);
  meters.seat_use.Observe(limit > 0 ? double(seats_in_use) / limit : 0);
  meters.executing_share.Observe(limit > 0 ? double(executing.size()) / limit : 0);
  meters.waiting_share.Observe(places > 0 ? double(waiting) / places : 0);
  const int demand = seats_in_use + seats_wanted;
  meters.demand.Observe(nominal > 0 ? double(demand) / nominal : 0);
  double first = now_, last = now_;
  if (waiting > 0) {
    first = queues[size_t(Due())].turn;
    for (const Queue& queue : queues) {
      if (!queue.waiters.empty()) last = std::max(last, queue.turn);
    }
  }
  meters.next_s_min.Set(first);
  meters.next_s_max.Set(last);
  ++samples_;
  demand_sum_ += demand;
  demand_squares_ += double(demand) * demand;
  demand_high_ = std::max(demand_high_, demand);
  if (samples_ == kSamplesTold) PublishDemand();
}

// Rising demand applies at once, falling demand gradually.
void Level::PublishDemand() {
  const double average = demand_sum_ / samples_;
  const double deviation = std::sqrt(std::max(0.0, demand_squares_ / samples_ - average * average));
  const double envelope = average + deviation;
  demand_smoothed_ = std::max(envelope, kSmoothing * demand_smoothed_ + (1 - kSmoothing) * envelope);
  meters.demand_high.Set(demand_high_);
  meters.demand_average.Set(average);
  meters.demand_deviation.Set(deviation);
  meters.demand_smoothed.Set(demand_smoothed_);
  meters.target.Set(std::max<double>(nominal - lendable, demand_smoothed_));
  samples_ = demand_high_ = 0;
  demand_sum_ = demand_squares_ = 0;
}

}  // namespace keelson::apiserver::flowcontrol
