// What the controllers can be told, with the defaults of kube-controller-manager.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controlplane/controllers/common/names.h"
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
  std::chrono::milliseconds sync_period{15000};
  std::chrono::milliseconds downscale_stabilization{300000};  // that a higher wish is kept for
  std::chrono::milliseconds cpu_initialization_period{300000}, initial_readiness_delay{30000};
  double tolerance = 0.1;
};

struct Options {
  Selection selection;  // switching one off leaves its objects as they are
  std::map<std::string, int, std::less<>> workers = DefaultWorkers();  // by name: keys at work side by side

  // As whom a controller writes, by AccountOf() its name; empty: all of them as who reads.
  std::function<client::RestClient(const std::string& account)> client_for;

  // Of ClusterRoles with an aggregationRule; the API server of this program does that itself.
  bool aggregate_cluster_roles = true;

  std::string root_ca_pem;  // for kube-root-ca.crt in every namespace; empty: not published

  std::chrono::milliseconds node_monitor_period{5000};
  std::chrono::milliseconds node_monitor_grace_period{
      50000};  // silence of a node's Lease before it is Unknown
  std::chrono::milliseconds node_startup_grace_period{60000};  // the same for a node that has never reported
  // How many nodes a second and zone get NoExecute taints: while the zone is healthy, and while it is not
  // (none at all in zones of up to large_cluster_size_threshold nodes).
  double node_eviction_rate = 0.1, secondary_node_eviction_rate = 0.01;
  double unhealthy_zone_threshold = 0.55;  // part of a zone's nodes, and at least 3, that are not ready
  int large_cluster_size_threshold = 50;

  int terminated_pod_gc_threshold = 12500;  // finished pods kept; 0: all

  std::chrono::milliseconds resource_quota_sync_period{300000};  // all is counted anew so often

  bool allocate_node_cidrs = false;
  std::vector<std::string> cluster_cidrs;  // at most one a family
  std::vector<std::string> service_cidrs;  // no part of them goes to a node
  // 0: 24, or 64 for IPv6. The first is for one range alone, the others are for each family.
  int node_cidr_mask_size = 0, node_cidr_mask_size_ipv4 = 0, node_cidr_mask_size_ipv6 = 0;

  CertificateSigning signing;
  bool pod_certificates = false;  // the feature PodCertificateRequest is on: old requests are removed
  PodAutoscalerOptions pod_autoscaler;

  // Ranges that Services of type LoadBalancer get addresses from; empty: they get those of the nodes.
  std::vector<std::string> load_balancer_addresses;

  // PEM of the private key that signs the tokens which Secrets hold; empty: no such Secret is filled in.
  std::string service_account_key_pem;
  std::chrono::milliseconds legacy_token_period =
      std::chrono::hours(24 * 365);  // unused, until they are retired
};

}  // namespace keelson::controllers
