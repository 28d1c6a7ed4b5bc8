// The cost of a request in seats, as upstream estimates it: lists, and watches with initial events, by their
// size in memory; writes by the number of watchers.
#pragma once

#include <chrono>
#include <functional>

#include "controlplane/apiserver/request/request_info.h"
#include "lib/http/message.h"

namespace keelson::apiserver::flowcontrol {

// A request occupies `initial_seats` while it executes, and `final_seats` for `additional` afterwards, while
// watchers are notified.
struct WorkEstimate {
  int initial_seats = 1, final_seats = 0;
  std::chrono::nanoseconds additional{0};
  int watchers = -1;  // notified by the write; -1: not a write

  int MaxSeats() const { return initial_seats > final_seats ? initial_seats : final_seats; }
  // The estimated total, before the duration is known.
  double SeatSeconds() const {
    constexpr double kGuessedSeconds = 0.003;
    return initial_seats * kGuessedSeconds + final_seats * std::chrono::duration<double>(additional).count();
  }
};

// The maximum seats of one request in a level with `nominal` seats; 0: the default of the request's kind.
// `hand_size` 0: the level has no queues.
int MaxSeatsOf(int nominal, int hand_size);

class WorkEstimator {
 public:
  struct Stored {
    int64_t objects = 0, bytes = 0;
  };
  struct Options {
    // Null for unknown resources.
    std::function<Stored(const RequestInfo&)> stored;
    // Number of watchers that a write notifies.
    std::function<int(const RequestInfo&)> watchers;
    // The number of seats here, relative to upstream's default.
    double scale = 1;
  };
  explicit WorkEstimator(Options options) : options_(std::move(options)) {}

  WorkEstimate Estimate(const RequestInfo& request, const http::Query& query, int max_seats) const;

 private:
  WorkEstimate OfList(const RequestInfo& request, const http::Query& query, int max_seats) const;
  WorkEstimate OfWrite(const RequestInfo& request, int max_seats) const;

  const Options options_;
};

}  // namespace keelson::apiserver::flowcontrol
