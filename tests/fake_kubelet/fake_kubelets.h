// Nodes without machines (as kubemark's hollow nodes): each has a Node and a Lease; its pods become Running
// and Ready, end when their Job expects it, and are removed when deleted. Nothing runs. For tests and
// benchmarks with many pods: API server, scheduler and controllers see no difference.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/client/informer.h"
#include "lib/client/rest.h"
#include "lib/client/workqueue.h"

namespace keelson::fake_kubelet {

struct Options {
  int nodes = 10;
  std::string prefix = "fake-";  // prefix of node names, before a number
  std::string cpu = "1000", memory = "4000Gi", pods = "100000";
  std::map<std::string, std::string> labels = {{"type", "fake"}};
  std::string taint;                        // key:effect on each node, to repel other pods
  std::chrono::milliseconds start_time{0};  // from binding to Running
  std::chrono::milliseconds job_time{0};    // from Running to Succeeded, for pods that are not restarted
  std::chrono::milliseconds lease_period{std::chrono::seconds(10)};
  int workers = 16;
};

class FakeKubelets {
 public:
  FakeKubelets(client::RestClient api, Options options, Clock& clock = Clock::Real());

  // Creates the nodes, then runs their pods until `stop`; calls `ready` when all nodes are Ready. The Node
  // objects remain, and become NotReady without Leases.
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);

  // Stops or resumes a node: no Lease renewals, and no pod updates.
  void Silence(const std::string& node, bool silent) KEELSON_EXCLUDES(mutex_);
  std::vector<std::string> names() const { return names_; }
  uint64_t writes() const { return writes_.load(); }  // successful ones

  // Syncs one pod; the workers call it.
  Result<client::Requeue> Reconcile(const std::string& key, std::stop_token stop);
  client::WorkQueue& queue() { return queue_; }
  client::InformerFactory& informers() { return informers_; }

 private:
  Result<> MakeNode(const client::RestClient& api, const std::string& name);
  Result<> RenewLease(const client::RestClient& api, const std::string& name);
  void RenewLeases(std::stop_token stop);
  Result<> Write(const client::RestClient& api, const corev1::Pod& pod, corev1::PodStatus status);
  bool IsSilent(const std::string& node) KEELSON_EXCLUDES(mutex_);

  const client::RestClient api_;
  const Options options_;
  Clock& clock_;
  std::vector<std::string> names_;
  std::set<std::string, std::less<>> own_;
  client::InformerFactory informers_;
  client::Informer<corev1::Pod>& pods_;
  client::WorkQueue queue_;
  std::atomic<uint64_t> writes_{0};
  std::atomic<uint32_t> next_address_{0};
  Mutex mutex_;
  std::set<std::string, std::less<>> silent_ KEELSON_GUARDED_BY(mutex_);
};

// The status of a pod whose containers have started, or have all succeeded.
corev1::PodStatus RunningStatus(const corev1::Pod& pod, const std::string& address, WallTime now);
corev1::PodStatus SucceededStatus(const corev1::Pod& pod, WallTime now);

}  // namespace keelson::fake_kubelet
