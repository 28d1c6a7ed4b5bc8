// A whole control plane with an etcd of its own, nodes that cost nothing, and what it has written and used.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/client/rest.h"
#include "tests/apiserver/cluster.h"
#include "tests/fake_kubelet/fake_kubelets.h"

namespace keelson::fake_kubelet {

class ControlPlane {
 public:
  // `flags` go to kube-controlplane. Returns when all nodes are Ready.
  ControlPlane(const std::vector<std::string>& flags, const Options& options);
  ~ControlPlane();

  // Writes that it has answered with success so far, by "POST pods" or "PUT pods/status"; Leases apart.
  using Writes = std::map<std::string, int64_t>;
  Writes CountWrites();
  static Writes Difference(const Writes& after, const Writes& before);  // without what is equal
  static int64_t Sum(const Writes& writes);

  double CpuSeconds() const;      // of the control plane
  double EtcdCpuSeconds() const;  // of its etcd
  size_t ResidentMb() const { return cluster_.ResidentMb(); }

  apiserver::TestCluster& cluster() { return cluster_; }
  const client::RestClient& api() const { return api_; }  // as admin
  FakeKubelets& kubelets() { return *kubelets_; }

 private:
  apiserver::TestCluster cluster_;
  client::RestClient api_;
  std::unique_ptr<FakeKubelets> kubelets_;
  std::jthread runner_;
};

}  // namespace keelson::fake_kubelet
