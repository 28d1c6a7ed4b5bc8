// kube-controlplane: API server, scheduler and controllers in one process, or each alone by --roles.
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "controlplane/etcd_command.h"
#include "controlplane/options.h"

namespace {

using keelson::controlplane::AuditBatchOptions;

void AddAuditBatchFlags(CLI::App& app, const std::string& backend, AuditBatchOptions& options) {
  const std::string prefix = "--audit-" + backend + "-";
  app.add_option(prefix + "mode", options.mode, "How events are handed on")
      ->check(CLI::IsMember({"batch", "blocking", "blocking-strict"}))
      ->capture_default_str();
  app.add_option(prefix + "batch-buffer-size", options.buffer_size, "Events kept until they are handed on")
      ->capture_default_str();
  app.add_option(prefix + "batch-max-size", options.max_size, "Events of a batch")->capture_default_str();
  app.add_option(prefix + "batch-max-wait", options.max_wait, "How long a batch may take to fill")
      ->capture_default_str();
  app.add_option(prefix + "batch-throttle-enable", options.throttle, "Limit batches a second")
      ->capture_default_str();
  app.add_option(prefix + "batch-throttle-qps", options.throttle_qps, "Batches a second")
      ->capture_default_str();
  app.add_option(prefix + "batch-throttle-burst", options.throttle_burst, "Batches at once")
      ->capture_default_str();
}

void AddAuditFlags(CLI::App& app, keelson::controlplane::AuditOptions& options) {
  app.add_option("--audit-policy-file", options.policy_file, "Policy of audit.k8s.io/v1: what is recorded");
  app.add_option("--audit-log-path", options.log_path, "File for audit events; -: standard output");
  app.add_option("--audit-log-format", options.log_format, "Form of the file's lines")
      ->check(CLI::IsMember({"json"}))
      ->capture_default_str();
  app.add_option("--audit-log-maxage", options.log_max_age_days, "Days that full files are kept; 0: forever")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--audit-log-maxbackup", options.log_max_backups, "Full files that are kept; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--audit-log-maxsize", options.log_max_megabytes, "Megabytes of a full file; 0: 100")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--audit-log-compress", options.log_compress, "Compress full files");
  AddAuditBatchFlags(app, "log", options.log_batch);
  app.add_option("--audit-webhook-config-file", options.webhook_config_file,
                 "kubeconfig of a server that audit events are sent to");
  app.add_option("--audit-webhook-initial-backoff", options.webhook_initial_backoff,
                 "Wait before a failed batch is sent again")
      ->capture_default_str();
  AddAuditBatchFlags(app, "webhook", options.webhook_batch);
}

std::vector<std::string> FlagsOf(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options()) {
    std::string name = option->get_single_name(), value = option->get_default_str();
    if (name == "help" || name == "version") continue;
    if (option->count() > 0) value = CLI::detail::join(option->results(), ",");
    out.push_back(name + "=" + value);
  }
  return out;
}

// Flags that tell which etcd is meant may stand anywhere.
void AddEtcdCommands(CLI::App& app, keelson::controlplane::EtcdCommand& command) {
  using Verb = keelson::controlplane::EtcdCommand::Verb;
  CLI::App* etcd = app.add_subcommand("etcd", "Look after etcd's data")->fallthrough()->require_subcommand(1);
  CLI::App* snapshot = etcd->add_subcommand("snapshot", "Backups")->fallthrough()->require_subcommand(1);
  auto add = [&command](CLI::App* parent, const char* name, const char* what, Verb verb) {
    CLI::App* made = parent->add_subcommand(name, what)->fallthrough();
    made->callback([&command, verb] { command.verb = verb; });
    return made;
  };
  add(snapshot, "save", "Write a snapshot of a running etcd", Verb::kSave)
      ->add_option("file", command.path, "Where to")
      ->required();
  add(snapshot, "restore", "Make the data of --data-dir of a snapshot", Verb::kRestore)
      ->add_option("file", command.path, "The snapshot")
      ->required();
  add(snapshot, "status", "Check a snapshot; print its hash, revision, keys and size", Verb::kStatus)
      ->add_option("file", command.path, "The snapshot")
      ->required();
  add(etcd, "defragment", "Give etcd's free space back to the file system", Verb::kDefragment);
}

}  // namespace

int main(int argc, char** argv) {
  keelson::controlplane::Options options;
  CLI::App app("Kubernetes control plane: API server, scheduler and controllers on etcd",
               "kube-controlplane");
  app.set_version_flag("--version", "Kubernetes v1.36.2");
  app.add_option("--roles", options.roles, "What runs in this process: apiserver, scheduler, controllers")
      ->delimiter(',')
      ->check(CLI::IsMember({"apiserver", "scheduler", "controllers"}))
      ->capture_default_str();
  app.add_option("-v,--v", options.verbosity, "Log level; 4 and above show debugging messages");

  app.add_option("--etcd-servers", options.etcd_servers, "etcd to use (https://host:port); none: start one")
      ->delimiter(',');
  app.add_option("--etcd-cafile", options.etcd_ca_file, "CA of etcd's certificate");
  app.add_option("--etcd-certfile", options.etcd_certificate_file, "Client certificate for etcd");
  app.add_option("--etcd-keyfile", options.etcd_key_file, "Key of the client certificate for etcd");
  app.add_option("--etcd-binary", options.etcd_binary, "etcd to start when no servers are given")
      ->capture_default_str();
  app.add_option("--data-dir", options.data_dir, "Where an etcd of our own keeps its data")
      ->capture_default_str();
  app.add_option("--encryption-provider-config", options.encryption_config_file,
                 "EncryptionConfiguration: what is encrypted in etcd, and how");
  app.add_flag("--encryption-provider-config-automatic-reload", options.reload_encryption_config,
               "Take up changes of --encryption-provider-config");

  app.add_option("--bind-address", options.bind_address, "Address to listen on")->capture_default_str();
  app.add_option("--secure-port", options.secure_port, "Port to listen on")->capture_default_str();
  app.add_option("--advertise-address", options.advertise_address,
                 "Address that the kubernetes Service leads to");
  app.add_option("--tls-cert-file", options.tls_certificate_file, "Serving certificate");
  app.add_option("--tls-private-key-file", options.tls_key_file, "Key of the serving certificate");
  app.add_option("--client-ca-file", options.client_ca_file, "CA of client certificates");
  app.add_option("--token-auth-file", options.token_auth_file, "Lines of token,user,uid,\"groups\"");

  keelson::controlplane::AddAuthFlags(app, options.auth);
  app.add_option("--service-account-issuer", options.service_account_issuers,
                 "Issuer of tokens; the first one signs")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--service-account-key-file", options.service_account_key_files,
                 "Keys that tokens are verified with")
      ->delimiter(',');
  app.add_option("--service-account-signing-key-file", options.service_account_signing_key_file,
                 "Private key that signs tokens");
  app.add_option("--api-audiences", options.api_audiences,
                 "Audiences of tokens for this server; default: the issuers")
      ->delimiter(',');
  app.add_option("--service-cluster-ip-range", options.service_cluster_ip_range, "CIDR of cluster IPs")
      ->capture_default_str();
  app.add_option("--service-node-port-range", options.service_node_port_range, "Node ports")
      ->capture_default_str();

  app.add_option("--enable-admission-plugins", options.enable_admission_plugins,
                 "Admission plugins to run besides those that are on by default")
      ->delimiter(',');
  app.add_option("--disable-admission-plugins", options.disable_admission_plugins,
                 "Admission plugins that are on by default and are not to run")
      ->delimiter(',');
  app.add_option("--admission-control-config-file", options.admission_control_config_file,
                 "AdmissionConfiguration with the settings of plugins");
  app.add_option("--default-not-ready-toleration-seconds", options.default_not_ready_toleration_seconds,
                 "How long pods that say nothing of it stay on a node that is not ready")
      ->capture_default_str();
  app.add_option("--default-unreachable-toleration-seconds", options.default_unreachable_toleration_seconds,
                 "How long pods that say nothing of it stay on a node that cannot be reached")
      ->capture_default_str();

  app.add_option("--kubelet-client-certificate", options.kubelet_certificate_file,
                 "Client certificate for kubelets");
  app.add_option("--kubelet-client-key", options.kubelet_key_file,
                 "Key of the client certificate for kubelets");
  app.add_option("--kubelet-certificate-authority", options.kubelet_ca_file,
                 "CA of kubelets' serving certificates");
  app.add_option("--root-ca-file", options.root_ca_file, "CA that pods verify the API server with");
  app.add_option("--kubeconfig", options.kubeconfig, "API server of a process without one");
  app.add_option("--cluster-cidr", options.cluster_cidr, "CIDR that nodes get their pod CIDRs from");
  app.add_flag("--allocate-node-cidrs", options.allocate_node_cidrs,
               "Give each node a pod CIDR of --cluster-cidr");
  const CLI::AsNumberWithUnit duration(std::map<std::string, int>{{"s", 1}, {"m", 60}, {"h", 3600}},
                                       CLI::AsNumberWithUnit::UNIT_REQUIRED);
  app.add_option("--node-monitor-period", options.node_monitor_period_seconds,
                 "How often nodes are looked at: 5s")
      ->transform(duration);
  app.add_option("--node-monitor-grace-period", options.node_monitor_grace_period_seconds,
                 "How long a node may be silent before it is NotReady: 40s")
      ->transform(duration);
  app.add_option("--request-timeout", options.request_timeout_seconds,
                 "How long a request that is no stream may take: 60s")
      ->transform(duration);
  app.add_option("--shutdown-delay-duration", options.shutdown_delay_seconds,
                 "How long to go on serving after /readyz fails at the end: 0s")
      ->transform(duration);
  app.add_option("--enable-priority-and-fairness", options.priority_and_fairness,
                 "Share the server by FlowSchemas and PriorityLevelConfigurations")
      ->capture_default_str();
  app.add_option("--max-requests-inflight", options.max_requests_inflight,
                 "Reading requests at once; with priority and fairness, part of the seats")
      ->capture_default_str();
  app.add_option("--max-mutating-requests-inflight", options.max_mutating_requests_inflight,
                 "Writing requests at once; with priority and fairness, part of the seats")
      ->capture_default_str();
  AddAuditFlags(app, options.audit);
  keelson::controlplane::EtcdCommand etcd;
  AddEtcdCommands(app, etcd);
  CLI11_PARSE(app, argc, argv);
  options.flags = FlagsOf(app);
  if (etcd.verb != keelson::controlplane::EtcdCommand::Verb::kNone) return RunEtcdCommand(etcd, options);
  // glibc would make eight arenas a core, each with a burst's free memory left in it.
  ::mallopt(M_ARENA_MAX, 4);
  return keelson::controlplane::RunControlPlane(options);
}
