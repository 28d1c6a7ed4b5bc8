// KubeSchedulerConfiguration, kubescheduler.config.k8s.io/v1.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/scheduler/config/profile.h"

namespace keelson::scheduler {

// One of `extenders`.
struct ExtenderConfig {
  std::string url_prefix;
  std::string filter_verb, prioritize_verb, bind_verb, preempt_verb;  // empty: not called for it
  int64_t weight = 0;
  bool node_cache_capable = false;             // requests carry names of nodes, not Nodes
  bool ignorable = false;                      // scheduling goes on without it when it fails
  std::vector<std::string> managed_resources;  // empty: of all pods
  std::vector<std::string> ignored_by_scheduler;
  std::chrono::milliseconds timeout{std::chrono::seconds(5)};
  bool insecure = false;
  std::string ca_pem, certificate_pem, key_pem, server_name;
};

// `leaderElection`, as far as the document has it.
struct LeaderElectionConfig {
  std::optional<bool> elect;
  std::optional<std::chrono::milliseconds> lease_duration, renew_deadline, retry_period;
  std::optional<std::string> resource_name, resource_namespace;
};

struct Config {
  std::vector<Profile> profiles = {Profile()};
  int percentage_of_nodes_to_score = 0;  // 0: a share that shrinks as the cluster grows
  std::chrono::milliseconds initial_backoff{std::chrono::seconds(1)};
  std::chrono::milliseconds max_backoff{std::chrono::seconds(10)};
  std::vector<ExtenderConfig> extenders;
  LeaderElectionConfig leader_election;
  std::string kubeconfig;  // clientConnection.kubeconfig; empty: not given
};

// Parses YAML or JSON. kInvalid, with all mistakes in one message: unknown fields, unknown plugins, values out
// of range. The other fields of clientConnection, parallelism, health and metrics addresses and profiling are
// accepted and have no effect: they are set elsewhere, or have no counterpart.
Result<Config> ParseConfig(std::string_view text);

}  // namespace keelson::scheduler
