// One run of `nodectl join`: what its phases share.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "ctl/config/documents.h"
#include "ctl/host/host.h"
#include "ctl/phases/init_run.h"
#include "ctl/pki/kubeconfig.h"
#include "lib/base/clock.h"

namespace keelson::ctl {

struct JoinOptions {
  std::vector<std::string> ignored_checks;  // in lower case
  std::string host_name;                    // the machine's, in lower case
  // Of a control plane, as of init.
  std::optional<bool> static_pod = {};
  std::string static_pod_image = {};
  PhaseLog* log = nullptr;  // of phases; null: none. Outlives the run
};

// What a machine learns of the cluster that it joins.
struct JoinedCluster {
  Kubeconfig access;  // the server, the CA, and credentials for TLS bootstrapping
  ClusterConfiguration cluster;
  boost::json::object kubelet,
      proxy;                       // documents; `proxy` is empty where no unit kube-proxy belongs on nodes
  std::vector<std::string> units;  // of Keelson that belong on every node: none on a cluster of others
  std::vector<std::string> optional_units;  // and on nodes that have them
  bool has_ready_namesake = false;          // a Node of this machine's name is Ready
};

class JoinRun {
 public:
  // References outlive the run. `config` is complete.
  JoinRun(Host& host, JoinConfiguration config, JoinOptions options, std::ostream& out, std::ostream& err,
          Clock& clock = Clock::Real());

  // As InitRun::Run(). A run of all phases after one that was killed goes on where that was.
  Result<> Run(const std::string& only);

  // ---- for phases ----

  Host& host() { return host_; }
  const Host& host() const { return host_; }
  const JoinConfiguration& config() const { return config_; }
  const JoinOptions& options() const { return options_; }
  std::ostream& out() { return out_; }
  std::ostream& err() { return err_; }
  Clock& clock() { return clock_; }
  PhaseLog* log() { return options_.log; }
  bool resumes() const { return resumes_; }
  // Discovers the cluster and reads its ConfigMaps, at the first call.
  Result<const JoinedCluster*> Cluster();
  // The same, where that has been; null: not yet.
  const JoinedCluster* known_cluster() const { return discovered_ ? &cluster_ : nullptr; }
  // Of a machine that becomes part of the control plane: what init's phases take, with the cluster's configuration.
  Result<InitRun*> ControlPlane();

 private:
  Host& host_;
  const JoinConfiguration config_;
  const JoinOptions options_;
  std::ostream& out_;
  std::ostream& err_;
  Clock& clock_;
  bool resumes_ = false, discovered_ = false;
  JoinedCluster cluster_;
  std::unique_ptr<InitRun> control_plane_;
};

std::string DescribeJoinPhases();

}  // namespace keelson::ctl
