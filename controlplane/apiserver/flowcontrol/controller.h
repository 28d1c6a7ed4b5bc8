// Priority and fairness: each priority level has seats of its own and may borrow idle ones of others;
// requests that find no seat wait in queues, flows of a level each in a few of them, so that one flow cannot
// keep the others out. Waiting holds no thread: who leaves a seat goes on with who gets it.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "controlplane/apiserver/flowcontrol/matcher.h"
#include "lib/base/clock.h"

namespace keelson::apiserver::flowcontrol {

using LevelPtr = std::shared_ptr<const api::flowcontrol::v1::PriorityLevelConfiguration>;

// How a request was classified: UIDs are what the reply's headers tell.
struct Classified {
  std::string schema, schema_uid, level, level_uid;
};

// `hand_size` different queues of `queues`, as the hash deals them.
std::vector<int> DealHand(uint64_t hash, int queues, int hand_size);

class Controller {  // thread safe
 public:
  struct Options {
    int seats = 600;
    std::chrono::milliseconds max_wait{15000};  // in a queue
  };
  explicit Controller(Options options, Clock& clock = Clock::Real());
  ~Controller();

  void Put(FlowSchemaPtr schema);
  void RemoveSchema(const std::string& name);
  void Put(LevelPtr level);
  void RemoveLevel(const std::string& name);

  // Calls one of both, once: `run` with a seat, now or later, on this thread or on one that has left a seat;
  // `refuse` when queues are full or the wait was too long (429).
  using Work = std::function<void(const Classified&)>;
  void Handle(const User& user, const RequestInfo& request, Work run, Work refuse);
  // Refuses who has waited for too long.
  void Run(std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::apiserver::flowcontrol
