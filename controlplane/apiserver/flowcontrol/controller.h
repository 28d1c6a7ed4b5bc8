// API priority and fairness (KEP-1040). Each priority level has its own seats and may borrow idle seats of
// others. Requests without a seat wait in queues; shuffle sharding assigns each flow a few queues, so that
// one flow cannot block the others. Waiting requests hold no thread: a request that arrives or frees a seat
// dispatches the next one.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "controlplane/apiserver/flowcontrol/level.h"
#include "controlplane/apiserver/flowcontrol/matcher.h"
#include "lib/base/clock.h"

namespace keelson::apiserver::flowcontrol {

class Controller {  // thread safe
 public:
  struct Options {
    int seats = 600;
    std::chrono::milliseconds max_wait{15000};  // in a queue
    WorkEstimator::Options work;
  };
  explicit Controller(Options options, Clock& clock = Clock::Real());
  ~Controller();

  void Put(FlowSchemaPtr schema);
  void RemoveSchema(const std::string& name);
  void Put(LevelPtr level);
  void RemoveLevel(const std::string& name);

  // Calls exactly one of the two, once: `run` when the request has its seats, now or later, on this or
  // another thread; `refuse` when the queue is full or the wait too long (429). This thread may run other
  // requests before Handle() returns.
  void Handle(const User& user, const RequestInfo& request, const http::Query& query, Work run, Work refuse);
  // Rejects requests that waited too long, and releases the extra seats of writes. Runs until `stop`.
  void Run(std::stop_token stop);

  // Dumps of the state for /debug/api_priority_and_fairness/.
  std::string DumpLevels() const;
  std::string DumpQueues() const;
  std::string DumpRequests(bool details) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::apiserver::flowcontrol
