// Options of the controllers, with the defaults of kube-controller-manager.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controlplane/controllers/common/names.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

// CAs by signer name. A signer without an entry issues no certificates.
struct CertificateSigning {
  struct Files {
    std::string certificate, key;  // paths of PEM files
  };
  std::map<std::string, Files> authorities;
  std::chrono::seconds duration = std::chrono::hours(24 * 365);  // maximum validity
};

// Options of the HorizontalPodAutoscaler controller, with upstream's defaults.
struct PodAutoscalerOptions {
  std::chrono::milliseconds sync_period{15000};
  std::chrono::milliseconds downscale_stabilization{300000};  // how long the highest recommendation holds
  std::chrono::milliseconds cpu_initialization_period{300000}, initial_readiness_delay{30000};
  double tolerance = 0.1;
};

struct Options {
  Selection selection;  // disabling a controller leaves its objects unchanged
  std::map<std::string, int, std::less<>> workers = DefaultWorkers();  // number of workers by controller name

  // Returns the client for writes of a ServiceAccount, by AccountOf() the controller's name; empty: all
  // controllers use the reading client.
  std::function<client::RestClient(const std::string& account)> client_for;

  // Runs the clusterrole-aggregation controller; the bundled API server aggregates by itself.
  bool aggregate_cluster_roles = true;

  std::string root_ca_pem;  // for kube-root-ca.crt in every namespace; empty: not published

  std::chrono::milliseconds node_monitor_period{5000};
  std::chrono::milliseconds node_monitor_grace_period{
      50000};  // time without a Lease renewal before the node becomes Unknown
  std::chrono::milliseconds node_startup_grace_period{60000};  // the same for a node that has never reported
  // Nodes per second and zone that get NoExecute taints: in a healthy zone, and in an unhealthy one (none in
  // zones of up to large_cluster_size_threshold nodes).
  double node_eviction_rate = 0.1, secondary_node_eviction_rate = 0.01;
  // Fraction of a zone's nodes, and at least 3 nodes, that are not ready
  double unhealthy_zone_threshold = 0.55;
  int large_cluster_size_threshold = 50;

  int terminated_pod_gc_threshold = 12500;  // number of finished pods to keep; 0: all

  std::chrono::milliseconds resource_quota_sync_period{300000};  // full recount interval

  bool disable_force_detach = false;  // volumes of an unhealthy node wait until it is out of service

  int max_endpoints_per_slice = 100, max_mirrored_per_subset = 1000;  // 1 to 1000

  bool allocate_node_cidrs = false;
  std::vector<std::string> cluster_cidrs;  // at most one per IP family
  std::vector<std::string> service_cidrs;  // excluded from node CIDRs
  // 0: default (24, or 64 for IPv6). The first is for a single range, the others are per family.
  int node_cidr_mask_size = 0, node_cidr_mask_size_ipv4 = 0, node_cidr_mask_size_ipv6 = 0;

  CertificateSigning signing;
  bool pod_certificates = false;    // the feature gate PodCertificateRequest: old requests are deleted
  bool storage_migrations = false;  // the feature gate StorageVersionMigrator
  PodAutoscalerOptions pod_autoscaler;

  // Address ranges for Services of type LoadBalancer; empty: such Services get node addresses.
  std::vector<std::string> load_balancer_addresses;

  // PEM of the private key that signs the tokens in Secrets; empty: Secrets get no tokens.
  std::string service_account_key_pem;
  std::chrono::milliseconds legacy_token_period =
      std::chrono::hours(24 * 365);  // unused time before a token is retired
};

}  // namespace keelson::controllers
