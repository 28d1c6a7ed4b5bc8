// A control plane with its own etcd and fake nodes; counts writes and resource usage.
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
  // Appends `flags` to kube-controlplane's. Returns when all nodes are Ready.
  ControlPlane(const std::vector<std::string>& flags, const Options& options);
  ~ControlPlane();

  // Successful writes so far, by "POST pods" or "PUT pods/status"; excludes Leases.
  using Writes = std::map<std::string, int64_t>;
  Writes CountWrites();
  static Writes Difference(const Writes& after, const Writes& before);  // only those that differ
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
