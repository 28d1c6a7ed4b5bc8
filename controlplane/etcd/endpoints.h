// Internal to the etcd client: its endpoints and their health. With more than one endpoint, a thread asks each for its
// status every second: a member that hangs, or that has lost its quorum, keeps its connections, so nothing else would
// tell. What runs on such an endpoint is cancelled, and others are chosen until it answers again.
//
// The process's own etcd, at a socket, also lists the other members of its cluster, which come and go at run time. They follow
// the socket in the list and take over when it does not answer. Endpoints elsewhere are those that the administrator has
// named, and no others.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "controlplane/etcd/client.h"
#include "lib/base/mutex.h"
#include "lib/rpc/channel.h"
#include "lib/rpc/proto/etcd.grpc.pb.h"

namespace keelson::etcd {

class Endpoint {  // thread safe
 public:
  // `url`: unix://path, http://host:port or https://host:port
  Endpoint(const std::string& url, const ClientOptions& options);

  // A call or stream on this endpoint, which a loss of its health cancels.
  class Use {
   public:
    Use(Endpoint& endpoint, std::chrono::milliseconds timeout, std::stop_token stop);
    ~Use();
    rpc::Call& call() { return call_; }
    // The outcome of the call; kUnavailable if the endpoint's health ended it.
    Result<> Done(const grpc::Status& status, std::string_view what) const;

   private:
    friend class Endpoint;
    Endpoint& endpoint_;
    rpc::Call call_;
    std::atomic<bool> lost_{false};
    std::list<Use*>::iterator place_;
  };

  bool healthy() const { return healthy_.load(); }
  // False cancels all that uses the endpoint.
  void SetHealthy(bool healthy);
  // Cancels all that uses the endpoint, now and later.
  void Close();

  const std::string url;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<etcdserverpb::KV::Stub> kv;
  const std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  const std::unique_ptr<etcdserverpb::Watch::Stub> watch;
  const std::unique_ptr<etcdserverpb::Maintenance::Stub> maintenance;

 private:
  void CancelUses() KEELSON_REQUIRES(mutex_);

  std::atomic<bool> healthy_{true};
  Mutex mutex_;
  std::list<Use*> uses_ KEELSON_GUARDED_BY(mutex_);
  bool closed_ KEELSON_GUARDED_BY(mutex_) = false;
};

class Endpoints {  // thread safe
 public:
  explicit Endpoints(const ClientOptions& options);

  // A connected endpoint: the current one, or the next healthy one that answers. kUnavailable: none until `deadline`, or Close() was
  // called.
  Result<Endpoint*> Pick(SteadyTime deadline, const std::stop_token& stop);
  // Later picks begin with the next endpoint.
  void Abandon(const Endpoint& endpoint);
  std::vector<Endpoint*> all() const;  // they live as long as this
  void Close();

 private:
  void Watch(std::stop_token stop);
  void Add(const std::vector<std::string>& urls);  // at the end; known ones are fine
  // Asks our own etcd for the other members of its cluster.
  void Learn(const std::stop_token& stop);
  // Asks all at once and waits for the answers.
  void Probe(const std::stop_token& stop);

  const ClientOptions options_;
  const bool own_;  // the first one is our own etcd
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Endpoint>> all_ KEELSON_GUARDED_BY(mutex_);  // none goes
  std::atomic<size_t> current_{0};
  std::atomic<bool> closed_{false};
  std::jthread watcher_;  // last, since it uses the others
};

}  // namespace keelson::etcd
