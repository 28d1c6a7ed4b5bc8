// Priority and fairness: each priority level has seats of its own and may borrow idle ones of others;
// requests that find no seat wait in queues, flows of a level each in a few of them, so that one flow cannot
// keep the others out. Waiting holds no thread: who leaves a seat, or comes, goes on with whose turn it is.
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

  // Calls one of both, once: `run` with its seats, now or later, on this thread or another; `refuse` when
  // queues are full or the wait was too long (429). This thread may go on with other requests before it
  // returns.
  void Handle(const User& user, const RequestInfo& request, const http::Query& query, Work run, Work refuse);
  // Refuses who has waited for too long, and gives back the seats that requests have kept for a while.
  void Run(std::stop_token stop);

  // What is there now, as the pages below /debug/api_priority_and_fairness/ show it.
  std::string DumpLevels() const;
  std::string DumpQueues() const;
  std::string DumpRequests(bool details) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::apiserver::flowcontrol
