// The base of all controllers: a work queue of keys, workers, and Reconcile() for one key.
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

  // Runs the workers until `stop`. Constructors register informer handlers; call Run() after all informers
  // have synced.
  void Run(std::stop_token stop);
  // Brings the cluster to the desired state for one key. Reads informer stores and writes through the API.
  // Runs on worker threads, never concurrently for the same key.
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

// Calls call(0) ... call(count - 1), up to eight concurrently. Returns when all calls have returned.
void ParallelFor(size_t count, const std::function<void(size_t)>& call);

// True for the error of a create in a terminating namespace.
bool IsNamespaceTerminating(const Error& error);

}  // namespace keelson::controllers
