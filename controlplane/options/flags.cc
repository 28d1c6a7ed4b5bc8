#include "controlplane/options/flags.h"
#include "lib/component/flag_adder.h"
#include "lib/component/flags.h"
#include "lib/k8s/feature_gates.h"

namespace keelson::controlplane {

using component::FlagAdder;

namespace {

constexpr int kControllersPort = 10257, kSchedulerPort = 10259;

// Flags whose values contain commas; repeatable.
void AddRepeated(const FlagAdder& add, const std::string& name, std::vector<std::string>& values,
                 const char* help) {
  add.app
      .add_option_function<std::vector<std::string>>(
          name,
          [&values](std::vector<std::string> given) {
            std::erase(given, "");
            values = std::move(given);
          },
          help)
      ->default_str("[]");
}

void AddStorage(const FlagAdder& add, Options& options) {
  add("--etcd-servers", options.etcd_servers, "etcd to use (https://host:port); none: start one");
  add("--etcd-servers-overrides", options.etcd_overrides,
      "Refused: all resources are in the etcd of --etcd-servers");
  add("--etcd-cafile", options.etcd_ca_file, "CA of etcd's certificate");
  add("--etcd-certfile", options.etcd_certificate_file, "Client certificate for etcd");
  add("--etcd-keyfile", options.etcd_key_file, "Key of the client certificate for etcd");
  add("--etcd-prefix", options.etcd_prefix, "What all keys in etcd begin with");
  add("--etcd-compaction-interval", options.compaction_interval, "How often history is forgotten; 0: never");
  add("--storage-backend", options.storage_backend, "etcd3")->check(CLI::IsMember({"", "etcd3"}));
  add("--storage-media-type", options.storage_media_type, "Form of objects in etcd")
      ->check(CLI::IsMember({"application/vnd.kubernetes.protobuf", "application/json"}));
  add("--event-ttl", options.event_ttl, "How long Events are kept");
  add("--etcd-binary", options.etcd_binary, "etcd to start when no servers are given");
  add("--etcd-address", options.etcd_address,
      "Where our own etcd serves clients (port 2379) and the peers of a cluster of several (2380); none: the "
      "loopback interface alone");
  add("--etcd-name", options.etcd_name, "Name of our own etcd in its cluster");
  add("--etcd-initial-cluster", options.etcd_initial_cluster,
      "Cluster that our own etcd joins when it has no data, NAME=PEER-URL,...; none: it begins a new one");
  add("--etcd-initial-cluster-state", options.etcd_initial_cluster_state,
      "Of --etcd-initial-cluster: 'existing', a cluster that has this etcd as a new member; 'new', all of "
      "its members "
      "begin it together");
  add("--etcd-pki-dir", options.etcd_pki_dir,
      "Certificates of our own etcd at --etcd-address: ca.crt, and server and peer with their keys");
  add("--data-dir", options.data_dir, "Where an etcd of our own keeps its data");
  add("--encryption-provider-config", options.encryption_config_file,
      "EncryptionConfiguration: what is encrypted in etcd, and how");
  add("--encryption-provider-config-automatic-reload", options.reload_encryption_config,
      "Take up changes of --encryption-provider-config");
}

void AddServing(const FlagAdder& add, Options& options) {
  add("--bind-address", options.bind_address, "Address to listen on");
  add("--secure-port", options.secure_port,
      "Port to listen on; without an API server 10257 for controllers, 10259 for a scheduler");
  add("--advertise-address", options.advertise_address, "Address that the kubernetes Service leads to");
  add("--tls-cert-file", options.tls_certificate_file, "Serving certificate");
  add("--tls-private-key-file", options.tls_key_file, "Key of the serving certificate");
  add("--tls-min-version", options.tls_min_version, "VersionTLS12 (what none means), VersionTLS13, ...");
  add("--tls-cipher-suites", options.tls_cipher_suites,
      "Cipher suites below TLS 1.3, by their IANA names; none: OpenSSL's");
  add("--tls-curve-preferences", options.tls_curves,
      "Numbers of key exchange groups: 23, 24, 25, 29; none: OpenSSL's");
  AddRepeated(
      add, "--tls-sni-cert-key", options.tls_sni_certificates,
      "CERTIFICATE,KEY or CERTIFICATE,KEY:NAME,NAME: for clients that ask for these names; may be repeated");
  add("--disable-http2-serving", options.disable_http2, "Speak HTTP/1.1 alone");
  add("--http2-max-streams-per-connection", options.http2_max_streams,
      "Requests at once on a connection of HTTP/2; 0: 500")
      ->check(CLI::NonNegativeNumber);
  add("--permit-port-sharing", options.permit_port_sharing, "Let several processes listen on one port");
  add("--cors-allowed-origins", options.cors_allowed_origins,
      "Regular expressions for origins whose pages may use the server from a browser");
  add("--strict-transport-security-directives", options.transport_security_directives,
      "Directives of the header Strict-Transport-Security: max-age=SECONDS, includeSubDomains, preload");
  add("--goaway-chance", options.goaway_chance,
      "Part of requests after which an HTTP/2 client is sent to a new connection, up to 0.02");
  add("--external-hostname", options.external_hostname,
      "Host in URLs that lead here; default: the advertised address");
  add("--endpoint-reconciler-type", options.endpoint_reconciler,
      "lease: all servers with a lease are endpoints of the Service kubernetes; master-count: the same, the "
      "name is "
      "deprecated; none: the endpoints are left to others")
      ->check(CLI::IsMember({"lease", "master-count", "none"}));
  add("--client-ca-file", options.client_ca_file, "CA of client certificates");
  add("--token-auth-file", options.token_auth_file, "Lines of token,user,uid,\"groups\"");
}

void AddServiceAccounts(const FlagAdder& add, Options& options) {
  add("--service-account-issuer", options.service_account_issuers, "Issuer of tokens; the first one signs");
  add("--service-account-key-file", options.service_account_key_files, "Keys that tokens are verified with");
  add("--service-account-signing-key-file", options.service_account_signing_key_file,
      "Private key that signs tokens");
  add("--api-audiences", options.api_audiences, "Audiences of tokens for this server; default: the issuers");
}

void AddAdmission(const FlagAdder& add, Options& options) {
  add("--enable-admission-plugins", options.enable_admission_plugins,
      "Admission plugins to run besides those that are on by default");
  add("--disable-admission-plugins", options.disable_admission_plugins,
      "Admission plugins that are on by default and are not to run");
  add("--admission-control-config-file", options.admission_control_config_file,
      "AdmissionConfiguration with the settings of plugins");
  add("--default-not-ready-toleration-seconds", options.default_not_ready_toleration_seconds,
      "How long pods that say nothing of it stay on a node that is not ready");
  add("--default-unreachable-toleration-seconds", options.default_unreachable_toleration_seconds,
      "How long pods that say nothing of it stay on a node that cannot be reached");
}

void AddCluster(const FlagAdder& add, Options& options) {
  add("--service-cluster-ip-range", options.service_cluster_ip_range, "CIDR of cluster IPs");
  add("--service-node-port-range", options.service_node_port_range, "Node ports");
  add("--kubernetes-service-node-port", options.kubernetes_service_node_port,
      "Node port of the Service kubernetes; 0: it is of type ClusterIP");
  add("--kubelet-client-certificate", options.kubelet_certificate_file, "Client certificate for kubelets");
  add("--kubelet-client-key", options.kubelet_key_file, "Key of the client certificate for kubelets");
  add("--kubelet-certificate-authority", options.kubelet_ca_file, "CA of kubelets' serving certificates");
  add("--kubelet-preferred-address-types", options.kubelet_address_types,
      "Which of a node's addresses is its kubelet's");
  add("--kubelet-timeout", options.kubelet_timeout,
      "How long a connection to a kubelet may take to come about");
  add("--proxy-client-cert-file", options.proxy_certificate_file,
      "Client certificate for extension API servers");
  add("--proxy-client-key-file", options.proxy_key_file, "Key of --proxy-client-cert-file");
  add("--peer-ca-file", options.peer_ca_file,
      "CA of the other API servers' serving certificates: requests for resources that this server does not "
      "know are passed "
      "on to one that does; none: they are not");
  add("--peer-advertise-ip", options.peer_advertise_ip,
      "IP address at which other API servers reach this one; default: as --advertise-address");
  add("--peer-advertise-port", options.peer_advertise_port,
      "Port at which other API servers reach this one; default: --secure-port");
  add("--allow-privileged", options.allow_privileged, "Let containers be privileged");
  add("--runtime-config", options.runtime_config,
      "group/version=true|false, also group/version/resource, v1, api/all, api/ga, api/beta and api/alpha");
  add("--root-ca-file", options.root_ca_file, "CA that pods verify the API server with");
}

void AddControllers(const FlagAdder& add, Options& options) {
  add("--controllers", options.controllers,
      "Controllers to run: * all of them, foo that one, -foo not that one; the first that names it counts");
  add("--enable-garbage-collector", options.enable_garbage_collector, "Run the garbage collector");
  add("--use-service-account-credentials", options.use_service_account_credentials,
      "Each controller acts as a ServiceAccount of its own");
  add("--service-account-private-key-file", options.service_account_private_key_file,
      "Private key that signs the tokens in Secrets; default: --service-account-signing-key-file");
  add("--load-balancer-addresses", options.manager.load_balancer_addresses,
      "Ranges that Services of type LoadBalancer get addresses from; none: the nodes' own addresses");
  add("--cluster-cidr", options.cluster_cidr,
      "CIDR that nodes get their pod CIDRs from; one, or one a family with a comma");
  add("--allocate-node-cidrs", options.manager.allocate_node_cidrs,
      "Give each node a pod CIDR of --cluster-cidr");
  const char kMask[] = "Bits of a node's pod CIDR; 0: 24 for IPv4, 64 for IPv6";
  add("--node-cidr-mask-size", options.manager.node_cidr_mask_size, kMask)->check(CLI::Range(0, 128));
  add("--node-cidr-mask-size-ipv4", options.manager.node_cidr_mask_size_ipv4, kMask)
      ->check(CLI::Range(0, 32));
  add("--node-cidr-mask-size-ipv6", options.manager.node_cidr_mask_size_ipv6, kMask)
      ->check(CLI::Range(0, 128));
  add("--legacy-service-account-token-clean-up-period", options.manager.legacy_token_period,
      "How long a token in a Secret may be unused before it is retired");
  add("--disable-force-detach-on-timeout", options.manager.disable_force_detach,
      "Never detach a volume by force from a node only because it has been unhealthy for long");
  add("--max-endpoints-per-slice", options.manager.max_endpoints_per_slice,
      "Endpoints of an EndpointSlice, 1 to 1000");
  add("--mirroring-max-endpoints-per-subset", options.manager.max_mirrored_per_subset,
      "Addresses of a subset of Endpoints that are mirrored, 1 to 1000");
  add("--resource-quota-sync-period", options.manager.resource_quota_sync_period,
      "How often all that quotas bound is counted anew");
  add("--node-monitor-period", options.manager.node_monitor_period, "How often nodes are looked at");
  add("--node-monitor-grace-period", options.manager.node_monitor_grace_period,
      "How long a node may be silent before it is NotReady");
  add("--node-startup-grace-period", options.manager.node_startup_grace_period,
      "The same for a node that has never been heard of");
  add("--terminated-pod-gc-threshold", options.manager.terminated_pod_gc_threshold,
      "Finished pods that are kept; 0 or less: all");
  add("--node-eviction-rate", options.manager.node_eviction_rate,
      "Nodes a second and zone whose pods are evicted, while the zone is healthy")
      ->check(CLI::NonNegativeNumber);
  add("--secondary-node-eviction-rate", options.manager.secondary_node_eviction_rate,
      "The same in a zone that is not, of a large cluster; in a small one it is 0")
      ->check(CLI::NonNegativeNumber);
  add("--unhealthy-zone-threshold", options.manager.unhealthy_zone_threshold,
      "Part of a zone's nodes, at least 3, that are NotReady until the zone counts as unhealthy")
      ->check(CLI::Range(0.0, 1.0));
  add("--large-cluster-size-threshold", options.manager.large_cluster_size_threshold,
      "Nodes of a zone above which it counts as large")
      ->check(CLI::NonNegativeNumber);
}

void AddConcurrency(const FlagAdder& add, Options& options) {
  for (const controllers::ControllerName& one : controllers::AllControllers()) {
    if (one.workers_flag.empty()) continue;
    const std::string help = "Keys that " + std::string(one.name) + " works on side by side";
    add("--" + std::string(one.workers_flag), options.manager.workers.find(one.name)->second, help.c_str())
        ->check(CLI::PositiveNumber);
  }
}

void AddRoles(const FlagAdder& add, Options& options) {
  add("--kubeconfig", options.kubeconfig, "API server of a process without one");
  add("--master", options.master, "URL of the API server, over what --kubeconfig says");
  add("--config,--scheduler-config", options.scheduler_config_file,
      "KubeSchedulerConfiguration: profiles, plugins, extenders");
  add("--write-config-to", options.write_config_to,
      "Write the scheduler's configuration to this file, and end");
  add("--pod-max-in-unschedulable-pods-duration", options.max_unschedulable,
      "How long a pod that no node takes waits without an event that may help it");
  add("--scheduler-debug-port", options.scheduler_debug_port,
      "Port on 127.0.0.1 where nodectl why pod asks the scheduler, in plain HTTP; 0: none")
      ->check(CLI::Range(0, 65535));
  add("--authentication-kubeconfig", options.authentication_kubeconfig,
      "Whom to ask whose a token is; default: --kubeconfig");
  add("--authentication-skip-lookup", options.authentication_skip_lookup,
      "Do not look up CAs of clients and proxies that no flag names with --authentication-kubeconfig");
  add.app
      .add_flag_function(
          "--authentication-tolerate-lookup-failure",
          [&options](int64_t given) { options.authentication_tolerate_lookup_failure = given > 0; },
          "Start where this cannot be looked up, and refuse certificates until it can; default: a scheduler "
          "does")
      ->default_str("false");
  add("--authorization-kubeconfig", options.authorization_kubeconfig,
      "Whom to ask who may see pages; default: --kubeconfig");
  add("--authorization-always-allow-paths", options.authorization_always_allow_paths,
      "Pages that everybody may see");
}

void AddAutoscaler(const FlagAdder& add, Options& options) {
  add("--horizontal-pod-autoscaler-sync-period", options.manager.pod_autoscaler.sync_period,
      "How often HorizontalPodAutoscalers are looked at");
  add("--horizontal-pod-autoscaler-downscale-stabilization",
      options.manager.pod_autoscaler.downscale_stabilization,
      "How long a higher number of replicas is kept that was asked for");
  add("--horizontal-pod-autoscaler-cpu-initialization-period",
      options.manager.pod_autoscaler.cpu_initialization_period,
      "After a pod's start, how long its CPU may count only while it is ready");
  add("--horizontal-pod-autoscaler-initial-readiness-delay",
      options.manager.pod_autoscaler.initial_readiness_delay,
      "After a pod's start, how long it is taken for one that has never been ready");
  add("--horizontal-pod-autoscaler-tolerance", options.manager.pod_autoscaler.tolerance,
      "How far the ratio of wanted to actual metrics may be from 1 before anything is scaled")
      ->check(CLI::NonNegativeNumber);
}

void AddLimits(const FlagAdder& add, Options& options) {
  add("--request-timeout", options.request_timeout, "How long a request that is no stream may take");
  add("--min-request-timeout", options.min_request_timeout_seconds,
      "Seconds after which a watch may end that says nothing of its end");
  add("--shutdown-delay-duration", options.shutdown_delay,
      "How long to go on serving after /readyz fails at the end");
  add("--enable-priority-and-fairness", options.priority_and_fairness,
      "Share the server by FlowSchemas and PriorityLevelConfigurations");
  add("--max-requests-inflight", options.max_requests_inflight,
      "Reading requests at once; with priority and fairness, part of the seats");
  add("--max-mutating-requests-inflight", options.max_mutating_requests_inflight,
      "Writing requests at once; with priority and fairness, part of the seats");
  add("--enable-aggregator-routing", options.enable_aggregator_routing,
      "Reach Services of webhooks and API servers at their endpoints, not at their ClusterIPs");
  add("--aggregator-reject-forwarding-redirect", options.reject_extension_redirects,
      "Answer 502 when an extension API server redirects a request");
  add("--metric-resolution", options.metric_resolution,
      "How often kubelets are asked what nodes and pods use");
  add("--profiling", options.profiling, "Serve /debug/pprof/ and /debug/flags/v");
}

void AddAuditBatch(const FlagAdder& add, const std::string& backend, AuditBatchOptions& options) {
  const std::string prefix = "--audit-" + backend + "-";
  add(prefix + "version", options.version, "Form of events")->check(CLI::IsMember({"audit.k8s.io/v1"}));
  add(prefix + "mode", options.mode, "How events are handed on")
      ->check(CLI::IsMember({"batch", "blocking", "blocking-strict"}));
  add(prefix + "batch-buffer-size", options.buffer_size, "Events kept until they are handed on");
  add(prefix + "batch-max-size", options.max_size, "Events of a batch");
  add(prefix + "batch-max-wait", options.max_wait, "How long a batch may take to fill");
  add(prefix + "batch-throttle-enable", options.throttle, "Limit batches a second");
  add(prefix + "batch-throttle-qps", options.throttle_qps, "Batches a second");
  add(prefix + "batch-throttle-burst", options.throttle_burst, "Batches at once");
  add(prefix + "truncate-enabled", options.truncate, "Take objects out of events that are too large");
  add(prefix + "truncate-max-event-size", options.truncate_max_event, "Bytes of an event");
  add(prefix + "truncate-max-batch-size", options.truncate_max_batch, "Bytes of a batch of events");
}

void AddAudit(const FlagAdder& add, AuditOptions& options) {
  add("--audit-policy-file", options.policy_file, "Policy of audit.k8s.io/v1: what is recorded");
  add("--audit-log-path", options.log_path, "File for audit events; -: standard output");
  add("--audit-log-format", options.log_format, "Form of the file's lines")
      ->check(CLI::IsMember({"json", "legacy"}));
  struct {
    const char* name;
    int& value;
    const char* help;
  } rows[] = {{"--audit-log-maxage", options.log_max_age_days, "Days that full files are kept; 0: forever"},
              {"--audit-log-maxbackup", options.log_max_backups, "Full files that are kept; 0: all"},
              {"--audit-log-maxsize", options.log_max_megabytes, "Megabytes of a full file; 0: 100"}};
  for (auto& row : rows) add(row.name, row.value, row.help)->check(CLI::NonNegativeNumber);
  add("--audit-log-compress", options.log_compress, "Compress full files");
  AddAuditBatch(add, "log", options.log_batch);
  add("--audit-webhook-config-file", options.webhook_config_file,
      "kubeconfig of a server that audit events are sent to");
  add("--audit-webhook-initial-backoff", options.webhook_initial_backoff,
      "Wait before a failed batch is sent again");
  AddAuditBatch(add, "webhook", options.webhook_batch);
}

}  // namespace

void AddFlags(CLI::App& app, Options& options) {
  const FlagAdder add{app};
  add("--roles", options.roles, "What runs in this process: apiserver, scheduler, controllers")
      ->check(CLI::IsMember({"apiserver", "scheduler", "controllers"}));
  add("-v,--v", options.verbosity, "Log level; 4 and above show debugging messages");
  add("--disabled-metrics", options.disabled_metrics, "Metrics that /metrics does not show");
  add("--logging-format", options.logging_format, "text or json")->check(CLI::IsMember({"text", "json"}));
  app.add_option_function<std::vector<std::string>>(
      "--feature-gates",
      [&options](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
          if (auto parsed = k8s::ParseFeatureGates(text, options.feature_gates); !parsed) {
            throw CLI::ValidationError("invalid argument \"" + text +
                                       "\" for \"--feature-gates\" flag: " + parsed.error().message());
          }
        }
      },
      "Features to turn on or off: name=true,name=false; may be repeated");
  AddStorage(add, options);
  AddServing(add, options);
  AddAuthFlags(app, options.auth);
  AddServiceAccounts(add, options);
  AddAdmission(add, options);
  AddCluster(add, options);
  AddAutoscaler(add, options);
  AddControllers(add, options);
  AddConcurrency(add, options);
  AddRoles(add, options);
  AddLeaderFlags(app, options.leader);
  AddSigningFlags(app, options.signing);
  AddLimits(add, options);
  AddAudit(add, options.audit);
  component::AddFlagsWithoutEffect(app, FlagsWithoutEffect());
}

void FinishOptions(const CLI::App& app, Options& options) {
  options.flags = FlagsOf(app);
  FinishLeaderFlags(app, options.leader);
  options.without_effect = component::GivenWithoutEffect(app, FlagsWithoutEffect());
  if (app.count("--secure-port") > 0 || options.Has("apiserver")) return;
  options.secure_port = options.Has("controllers") ? kControllersPort : kSchedulerPort;
}

Result<> CheckServerGates(const Options& options) {
  constexpr const char* kPeers = "UnknownVersionInteroperabilityProxy";
  if (options.Has("apiserver") && !k8s::FeatureEnabled(options.feature_gates, kPeers)) {
    const std::pair<const char*, const std::string*> flags[] = {
        {"--peer-ca-file", &options.peer_ca_file},
        {"--peer-advertise-ip", &options.peer_advertise_ip},
        {"--peer-advertise-port", &options.peer_advertise_port}};
    for (const auto& [flag, value] : flags) {
      if (value->empty()) continue;
      return Error(Code::kInvalid, std::string(flag) + " requires " + kPeers + " feature to be turned on");
    }
  }
  constexpr const char* kCbor = "CBORServingAndStorage";
  const auto cbor = options.feature_gates.find(kCbor);
  if (!options.Has("apiserver") || cbor == options.feature_gates.end() || !cbor->second) return {};
  return Error(Code::kInvalid, std::string("--feature-gates=") + kCbor +
                                   "=true: this API server neither speaks nor stores CBOR");
}

}  // namespace keelson::controlplane
