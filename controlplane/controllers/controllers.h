// The controller manager: one informer a kind, shared; a queue and some workers a controller. It reaches the
// API through lib/client alone, so it runs against any Kubernetes API server.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

// Who may issue certificates, by signer name; a signer that is not named here issues none.
struct CertificateSigning {
  struct Files {
    std::string certificate, key;  // paths of PEM files
  };
  std::map<std::string, Files> authorities;
  std::chrono::seconds duration = std::chrono::hours(24 * 365);  // at most
};

// HorizontalPodAutoscalers, with upstream's defaults.
struct PodAutoscalerOptions {
  int workers = 5;
  std::chrono::seconds sync_period{15};
  std::chrono::seconds downscale_stabilization{300};  // that a higher wish is kept for
  std::chrono::seconds cpu_initialization_period{300}, initial_readiness_delay{30};
  double tolerance = 0.1;
};

struct Options {
  // Names as in ControllerNames(); empty: all. Switching one off leaves its objects as they are.
  std::set<std::string> disabled;

  std::string root_ca_pem;  // for kube-root-ca.crt in every namespace; empty: not published

  std::chrono::seconds node_monitor_period{5};
  std::chrono::seconds node_monitor_grace_period{40};  // silence of a node's Lease before it is Unknown
  std::chrono::seconds node_startup_grace_period{60};  // the same for a node that has never reported
  double node_eviction_rate = 0.1;                     // nodes a second that get NoExecute taints

  int terminated_pod_gc_threshold = 12500;  // finished pods kept; 0: all

  bool allocate_node_cidrs = false;
  std::vector<std::string> cluster_cidrs;  // at most one a family
  int node_cidr_mask_size_ipv4 = 24;
  int node_cidr_mask_size_ipv6 = 64;

  CertificateSigning signing;
  PodAutoscalerOptions pod_autoscaler;

  // Ranges that Services of type LoadBalancer get addresses from; empty: they get those of the nodes.
  std::vector<std::string> load_balancer_addresses;

  // PEM of the private key that signs the tokens which Secrets hold; empty: no such Secret is filled in.
  std::string service_account_key_pem;
  std::chrono::seconds legacy_token_period = std::chrono::hours(24 * 365);  // unused, until they are retired
};

std::vector<std::string> ControllerNames();

// Runs until `stop`. `ready` is called once when all informers have synced and the workers have started.
Result<> Run(client::RestClient api, const Options& options, std::stop_token stop,
             std::function<void()> ready, Clock& clock = Clock::Real());

}  // namespace keelson::controllers
