#include "controlplane/storage_options.h"

#include "controlplane/options/option_values.h"
#include "lib/base/text.h"

namespace keelson::controlplane {
namespace {

// What makes our own etcd a member that others can reach.
Result<> SetAddress(const Options& options, etcd::SupervisorOptions& supervisor) {
  if (options.etcd_address.empty()) return {};
  if (options.etcd_pki_dir.empty() || options.etcd_ca_file.empty() || options.etcd_certificate_file.empty() ||
      options.etcd_key_file.empty()) {
    return Error(Code::kInvalid,
                 "--etcd-address needs --etcd-pki-dir, --etcd-cafile, --etcd-certfile and --etcd-keyfile");
  }
  supervisor.address = options.etcd_address;
  supervisor.name = options.etcd_name;
  supervisor.initial_cluster = options.etcd_initial_cluster;
  const std::string& state = options.etcd_initial_cluster_state;
  if (state != "new" && state != "existing") {
    return Error(Code::kInvalid, "--etcd-initial-cluster-state is 'new' or 'existing', not '" + state + "'");
  }
  supervisor.bootstraps = state == "new";
  const std::string& pki = options.etcd_pki_dir;
  supervisor.pki = {
      pki + "/ca.crt",       pki + "/server.crt", pki + "/server.key", options.etcd_certificate_file,
      options.etcd_key_file, pki + "/peer.crt",   pki + "/peer.key"};
  return {};
}

}  // namespace

Result<> CheckEtcdFlags(const Options& options) {
  if (!options.etcd_overrides.empty()) {
    return Error(Code::kInvalid,
                 "--etcd-servers-overrides=" + Join(options.etcd_overrides, ",") +
                     ": all resources are in the etcd of --etcd-servers; this server would not "
                     "see objects in another etcd");
  }
  if (!options.etcd_servers.empty() && !options.etcd_address.empty()) {
    return Error(Code::kInvalid, "--etcd-servers and --etcd-address are mutually exclusive");
  }
  return {};
}

Result<etcd::SupervisorOptions> SupervisorOptionsOf(const Options& options) {
  etcd::SupervisorOptions out;
  out.binary = options.etcd_binary;
  out.data_dir = options.data_dir + "/etcd";
  KEELSON_RETURN_IF_ERROR(SetAddress(options, out));
  return out;
}

Result<etcd::ClientOptions> EtcdClientOptionsOf(const Options& options) {
  etcd::ClientOptions out;
  out.endpoints = options.etcd_servers;
  KEELSON_ASSIGN_OR_RETURN(out.ca_pem, ReadIfSet(options.etcd_ca_file));
  KEELSON_ASSIGN_OR_RETURN(out.certificate_pem, ReadIfSet(options.etcd_certificate_file));
  KEELSON_ASSIGN_OR_RETURN(out.key_pem, ReadIfSet(options.etcd_key_file));
  return out;
}

Result<storage::Store::Options> StoreOptionsOf(const Options& options) {
  storage::Store::Options out;
  out.compact_period = std::chrono::duration_cast<std::chrono::seconds>(options.compaction_interval);
  out.json = options.storage_media_type == "application/json";
  if (options.encryption_config_file.empty()) return out;
  KEELSON_ASSIGN_OR_RETURN(const std::string prefix, EtcdPrefix(options.etcd_prefix));
  KEELSON_ASSIGN_OR_RETURN(out.encryption, storage::Encryption::Load(options.encryption_config_file, prefix));
  out.reload_encryption = options.reload_encryption_config;
  return out;
}

}  // namespace keelson::controlplane
