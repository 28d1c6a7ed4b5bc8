// Internal to the etcd client: its endpoints and their health. With more than one endpoint, a thread for each asks for its
// status every second, and more often while calls wait: a member that hangs, or that has lost its quorum, keeps its connections,
// so nothing else would tell. What runs on such an endpoint is cancelled, and others are chosen until it answers again.
//
// The answer to a write that was on its way to a leader that has died is lost, and etcd says so only when its own time for requests (7 s) is
// over. So calls that began before another leader was seen are cancelled when that one does not answer them soon.
//
// The process's own etcd, at a socket, also lists the other members of its cluster, which come and go at run time. They follow
// the socket in the list, and take over until it answers again. Endpoints elsewhere are those that the administrator has
// named, and no others.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
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

  // A call or stream on this endpoint, which ends with kUnavailable when the endpoint's health is lost. A call (one with a timeout)
  // also ends when etcd has elected another leader and gives no answer: etcd would hold back the error for seconds.
  class Use {
   public:
    Use(Endpoint& endpoint, std::chrono::milliseconds timeout, std::stop_token stop);
    ~Use();
    rpc::Call& call() { return call_; }
    // The outcome of the call.
    Result<> Done(const grpc::Status& status, std::string_view what) const;
    // Whether the call has failed because of another leader: then the endpoint itself is well.
    bool IsOfLeader(const grpc::Status& status) const;

   private:
    friend class Endpoint;
    enum class Lost { kNot, kMember, kLeader };

    Endpoint& endpoint_;
    const bool stream_;
    const SteadyTime began_ = std::chrono::steady_clock::now();
    rpc::Call call_;
    std::atomic<Lost> lost_{Lost::kNot};
    std::list<Use*>::iterator place_;
  };

  bool healthy() const { return healthy_.load(); }
  bool answers() const { return answers_.load(); }  // also one without a leader
  // What a probe has found. `leader` 0: the member has none, which counts only when it lasts.
  void Answered(uint64_t leader, uint64_t term);
  // A probe that began at `asked` has found nothing.
  void NotAnswered(SteadyTime asked);
  // Whether another probe should come soon: calls wait, or there is another leader.
  bool InDoubt() const;
  // Cancels all streams: they are to begin anew on another endpoint.
  void CancelStreams();
  // Cancels all that uses the endpoint, now and later.
  void Close();

  const std::string url;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<etcdserverpb::KV::Stub> kv;
  const std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  const std::unique_ptr<etcdserverpb::Watch::Stub> watch;
  const std::unique_ptr<etcdserverpb::Maintenance::Stub> maintenance;

 private:
  void SetHealthy(bool healthy);
  void Cancel(Use::Lost why, const std::function<bool(const Use&)>& which) KEELSON_REQUIRES(mutex_);

  std::atomic<bool> healthy_{true}, answers_{true};
  mutable Mutex mutex_;
  std::list<Use*> uses_ KEELSON_GUARDED_BY(mutex_);
  bool closed_ KEELSON_GUARDED_BY(mutex_) = false;
  uint64_t leader_ KEELSON_GUARDED_BY(mutex_) = 0, term_ KEELSON_GUARDED_BY(mutex_) =
                                                       0;  // the last ones with a leader
  std::optional<SteadyTime> leaderless_since_ KEELSON_GUARDED_BY(mutex_);
  // When another leader was found; what began before may have gone to the one before.
  std::optional<SteadyTime> changed_ KEELSON_GUARDED_BY(mutex_);
};

class Endpoints {  // thread safe
 public:
  explicit Endpoints(const ClientOptions& options);
  ~Endpoints();

  // A connected endpoint: the current one, or the next healthy one that answers. kUnavailable: none until `deadline`, or Close() was
  // called.
  Result<Endpoint*> Pick(SteadyTime deadline, const std::stop_token& stop);
  // Later picks begin with the next endpoint, until our own etcd (if there is one) is well again.
  void Abandon(const Endpoint& endpoint);
  std::vector<Endpoint*> all() const;  // they live as long as this
  void Close();

 private:
  void Watch(Endpoint& endpoint, const std::stop_token& stop);
  void Add(const std::vector<std::string>& urls);  // at the end; known ones are fine
  // Asks our own etcd for the other members of its cluster. False: our own etcd does not answer, for example while it starts.
  bool Learn(const std::stop_token& stop);
  void Probe(Endpoint& endpoint, const std::stop_token& stop);
  void ReturnToOwn();

  const ClientOptions options_;
  const bool own_;  // the first one is our own etcd
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Endpoint>> all_ KEELSON_GUARDED_BY(mutex_);  // none goes
  bool watched_ KEELSON_GUARDED_BY(mutex_) = false;
  std::atomic<size_t> current_{0};
  std::atomic<SteadyTime> left_own_{SteadyTime::min()};  // when our own etcd was last abandoned
  std::atomic<bool> closed_{false};
  std::vector<std::jthread> watchers_ KEELSON_GUARDED_BY(mutex_);  // of one endpoint each
};

}  // namespace keelson::etcd
