// The base of the controllers: a queue of keys, workers, and Reconcile() for one key. And what they all share.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "csi/controller/driver/driver.h"
#include "csi/controller/model/wire.h"
#include "lib/base/clock.h"
#include "lib/client/events.h"
#include "lib/client/informer.h"
#include "lib/client/rest.h"
#include "lib/client/workqueue.h"

namespace keelson::csi::controller {

using client::Requeue;

struct RetryOptions {
  int workers = 10;                                        // --worker-threads
  client::BackoffOptions backoff{std::chrono::seconds(1),  // --retry-interval-start, --retry-interval-max
                                 std::chrono::minutes(5)};
};

// What a controller of one driver works with. All outlive it.
struct Environment {
  client::RestClient api;
  client::InformerFactory& informers;
  client::EventRecorder& events;
  Driver& driver;  // connected
  Clock& clock;
  RetryOptions retry;
  std::string node;  // --node-deployment: only what belongs to this node; empty: all nodes
};

class Reconciler {
 public:
  Reconciler(std::string name, Clock& clock, const RetryOptions& retry);
  virtual ~Reconciler() = default;
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  // Runs the workers until `stop`. Constructors register informer handlers; call Run() after the informers have
  // synced. A failed key is tried again with back-off.
  void Run(std::stop_token stop);
  // Runs on worker threads, never at once for the same key. An error is logged.
  virtual Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) = 0;

  client::WorkQueue& queue() { return queue_; }

 private:
  const int workers_;
  client::WorkQueue queue_;
};

// A controller of one driver.
class Controller : public Reconciler {
 public:
  Controller(std::string name, const Environment& environment);

 protected:
  const Environment& environment() const { return environment_; }
  Driver& driver() const { return environment_.driver; }
  client::RestClient Api(std::stop_token stop) const { return environment_.api.With(stop); }

 private:
  const Environment environment_;
};

// The values of a secret, for a request. Errors have the sidecars' words; an absent reference gives none.
Result<Strings> ReadSecret(const client::RestClient& api, const corev1::SecretReference& reference);

bool HasFinalizer(const metav1::ObjectMeta& meta, const std::string& finalizer);
// Removes it from a copy of the object that was read before; false: it was not there.
bool DropFinalizer(metav1::ObjectMeta& meta, const std::string& finalizer);

}  // namespace keelson::csi::controller
