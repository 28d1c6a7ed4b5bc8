#include "ctl/config/read.h"

#include "ctl/config/fields.h"

namespace keelson::ctl {
namespace {

using component::DocumentReader;
using component::Zero;

BootstrapToken ReadToken(DocumentReader& in) {
  BootstrapToken out;
  in.Read("token", out.token);
  in.Read("description", out.description);
  in.Read("expires", out.expires);
  if (in.Has("ttl")) in.Read("ttl", out.ttl.emplace());
  in.Read("usages", out.usages);
  in.Read("groups", out.groups);
  return out;
}

// `Config`: has advertise_address and bind_port.
template <typename Config>
void ReadEndpoint(DocumentReader& in, Config& out) {
  in.Object("localAPIEndpoint", [&](DocumentReader& endpoint) {
    endpoint.Read("advertiseAddress", out.advertise_address);
    int32_t port = 0;
    endpoint.Read("bindPort", port, Zero::kDefault);
    if (port < 0 || port > 65535) {
      endpoint.Problem("bindPort", "Invalid value: " + std::to_string(port) + ": port number is not valid");
    } else if (port != 0) {
      out.bind_port = static_cast<uint16_t>(port);
    }
  });
}

void ReadDiscovery(DocumentReader& in, JoinConfiguration& out) {
  in.Object("discovery", [&](DocumentReader& discovery) {
    discovery.Object("bootstrapToken", [&](DocumentReader& token) {
      token.Read("token", out.token);
      token.Read("apiServerEndpoint", out.api_server_endpoint);
      token.Read("caCertHashes", out.ca_hashes);
      token.Read("unsafeSkipCAVerification", out.unsafe_skip_ca_verification);
    });
    discovery.Object("file", [&](DocumentReader& file) { file.Read("kubeConfigPath", out.discovery_file); });
    discovery.Read("tlsBootstrapToken", out.tls_bootstrap_token);
  });
}

}  // namespace

Result<InitConfiguration> ReadInit(const ConfigDocuments& documents, std::vector<std::string>& warnings) {
  InitConfiguration out;
  if (documents.init) {
    component::DocumentProblems problems{.kind = "InitConfiguration"};
    {
      DocumentReader in(*documents.init, problems);
      in.Ignore({"apiVersion", "kind"});
      in.List("bootstrapTokens",
              [&](DocumentReader& item) { out.bootstrap_tokens.push_back(ReadToken(item)); });
      in.Read("dryRun", out.dry_run);
      ReadNode(in, out.node, warnings);
      ReadEndpoint(in, out);
      in.Read("certificateKey", out.certificate_key);
      in.Read("skipPhases", out.skip_phases);
      ReadPatches(in, out.patches_dir);
      ReadTimeouts(in, out.timeouts);
    }
    KEELSON_RETURN_IF_ERROR(Refuse(problems, "InitConfiguration"));
  }
  if (documents.cluster) {
    KEELSON_ASSIGN_OR_RETURN(out.cluster, ReadCluster(*documents.cluster, warnings));
  }
  if (documents.kubelet) out.kubelet = *documents.kubelet;
  if (documents.proxy) out.proxy = *documents.proxy;
  return out;
}

Result<JoinConfiguration> ReadJoin(const ConfigDocuments& documents, std::vector<std::string>& warnings) {
  JoinConfiguration out;
  if (!documents.join) return out;
  component::DocumentProblems problems{.kind = "JoinConfiguration"};
  {
    DocumentReader in(*documents.join, problems);
    in.Ignore({"apiVersion", "kind"});
    in.Read("dryRun", out.dry_run);
    ReadNode(in, out.node, warnings);
    in.Read("caCertPath", out.ca_file, Zero::kDefault);
    ReadDiscovery(in, out);
    in.Object("controlPlane", [&](DocumentReader& plane) {
      JoinControlPlane& made = out.control_plane.emplace();
      ReadEndpoint(plane, made);
      plane.Read("certificateKey", made.certificate_key);
    });
    in.Read("skipPhases", out.skip_phases);
    ReadPatches(in, out.patches_dir);
    ReadTimeouts(in, out.timeouts);
  }
  KEELSON_RETURN_IF_ERROR(Refuse(problems, "JoinConfiguration"));
  return out;
}

Result<ResetConfiguration> ReadReset(const ConfigDocuments& documents, std::vector<std::string>& warnings) {
  ResetConfiguration out;
  if (!documents.reset) return out;
  component::DocumentProblems problems{.kind = "ResetConfiguration"};
  {
    DocumentReader in(*documents.reset, problems);
    in.Ignore({"apiVersion", "kind"});
    in.Read("cleanupTmpDir", out.clean_tmp_dir);
    in.Read("certificatesDir", out.certificates_dir, Zero::kDefault);
    in.Read("criSocket", out.cri_socket);
    in.Read("dryRun", out.dry_run);
    in.Read("force", out.force);
    in.Read("ignorePreflightErrors", out.ignore_preflight_errors);
    in.Read("skipPhases", out.skip_phases);
    WithoutEffect(in, {"unmountFlags"}, "mounts are undone without flags", warnings);
    Timeouts unused;
    ReadTimeouts(in, unused);
  }
  KEELSON_RETURN_IF_ERROR(Refuse(problems, "ResetConfiguration"));
  return out;
}

}  // namespace keelson::ctl
