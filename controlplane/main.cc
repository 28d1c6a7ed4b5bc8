// kube-controlplane: API server, scheduler and controllers in one process, or each alone by --roles.
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "controlplane/options.h"

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
  CLI11_PARSE(app, argc, argv);
  // glibc would make eight arenas a core, each with a burst's free memory left in it.
  ::mallopt(M_ARENA_MAX, 4);
  return keelson::controlplane::RunControlPlane(options);
}
