// What a request costs, in seats, as upstream estimates it: lists and watches that begin with a list by the
// bytes they hold in memory, writes by the watchers that hear of them.
#pragma once

#include <chrono>
#include <functional>

#include "controlplane/apiserver/request/request_info.h"
#include "lib/http/message.h"

namespace keelson::apiserver::flowcontrol {

// While a request is answered it has `initial_seats`; `final_seats` stay taken for `additional` after that,
// while watchers are told.
struct WorkEstimate {
  int initial_seats = 1, final_seats = 0;
  std::chrono::nanoseconds additional{0};
  int watchers = -1;  // that a write is told to; -1: it is none

  int MaxSeats() const { return initial_seats > final_seats ? initial_seats : final_seats; }
  // All of it, where nobody knows yet how long the answer takes.
  double SeatSeconds() const {
    constexpr double kGuessedSeconds = 0.003;
    return initial_seats * kGuessedSeconds + final_seats * std::chrono::duration<double>(additional).count();
  }
};

// The most seats of one request of a level that has `nominal` of its own; 0: as many as the kind of request
// may have. `hand_size` 0: the level has no queues.
int MaxSeatsOf(int nominal, int hand_size);

class WorkEstimator {
 public:
  struct Stored {
    int64_t objects = 0, bytes = 0;
  };
  struct Options {
    // Null for resources that nobody knows.
    std::function<Stored(const RequestInfo&)> stored;
    // Watchers that a write is told to.
    std::function<int(const RequestInfo&)> watchers;
    // Seats here are so many times those that the estimate's constants were made for.
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
