// What all controllers are: a queue of keys, workers, and a Reconcile() that makes the world fit one key.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "lib/base/clock.h"
#include "lib/client/events.h"
#include "lib/client/informer.h"
#include "lib/client/rest.h"
#include "lib/client/workqueue.h"

namespace keelson::controllers {

using client::Requeue;

class Controller {
 public:
  Controller(std::string name, Clock& clock, int workers = 1, client::BackoffOptions backoff = {});
  virtual ~Controller() = default;
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Informers' handlers are registered by the constructors; Run() starts after all have synced.
  void Run(std::stop_token stop);
  // Reads the local stores, writes through the API. Never runs twice at once for one key.
  virtual Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) = 0;

  client::WorkQueue& queue() { return queue_; }
  const std::string& name() const { return queue_.name(); }

 protected:
  Clock& clock() { return clock_; }

 private:
  Clock& clock_;
  client::WorkQueue queue_;
  const int workers_;
};

// Calls call(0) ... call(count - 1), up to eight at a time, and returns when all have come back.
void ParallelFor(size_t count, const std::function<void(size_t)>& call);

// The namespace is on its way out: what a create there fails with.
bool IsNamespaceTerminating(const Error& error);

}  // namespace keelson::controllers
