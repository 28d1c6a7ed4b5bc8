#include <fmt/format.h>

#include "ctl/config/fields.h"
#include "ctl/config/read.h"

namespace keelson::ctl {
namespace {

using component::DocumentReader;
using component::Zero;

constexpr std::string_view kOneProcess = "the control plane is one process of the host, kube-controlplane";
constexpr char kOwnEtcdData[] = "/var/lib/keelson/controlplane/etcd";
constexpr std::string_view kNoImages = "daemons are units of systemd, not images";

// apiServer, controllerManager, scheduler: `name` is the section's.
void ReadComponent(DocumentReader& in, std::string_view name, std::vector<Argument>& out,
                   std::vector<std::string>& warnings,
                   const std::function<void(DocumentReader&)>& more = {}) {
  in.Object(name, [&](DocumentReader& section) {
    section.Read("extraArgs", out);
    WithoutEffect(section, {"extraVolumes", "extraEnvs"}, kOneProcess, warnings);
    if (more) more(section);
  });
}

void ReadEtcd(DocumentReader& in, ClusterConfiguration& out, std::vector<std::string>& warnings) {
  in.Object("etcd", [&](DocumentReader& etcd) {
    etcd.Object("local", [&](DocumentReader& local) {
      std::string directory;
      local.Read("dataDir", directory);
      // kubeadm's default, and what ClusterDocument() writes.
      if (!directory.empty() && directory != "/var/lib/etcd" && directory != kOwnEtcdData) {
        warnings.push_back(
            local.PathOf("dataDir") +
            " has no effect: the control plane's own etcd keeps its data in /var/lib/keelson/controlplane");
      }
      WithoutEffect(local, {"extraArgs", "extraEnvs"},
                    "etcd is a child of kube-controlplane, which sets its flags", warnings);
      WithoutEffect(local, {"serverCertSANs", "peerCertSANs"},
                    "etcd's certificates have the name and the address of their machine", warnings);
      WithoutEffect(local, {"imageRepository", "imageTag"}, kNoImages, warnings);
    });
    etcd.Object("external", [&](DocumentReader& external) {
      ExternalEtcd& found = out.external_etcd.emplace();
      external.Read("endpoints", found.endpoints);
      external.Read("caFile", found.ca_file);
      external.Read("certFile", found.certificate_file);
      external.Read("keyFile", found.key_file);
      WithoutEffect(external, {"httpEndpoints"}, "metrics of etcd are etcd's own matter", warnings);
    });
    if (etcd.Has("local") && out.external_etcd) {
      etcd.Problem("", "Invalid value: \"\": .Etcd.Local and .Etcd.External are mutually exclusive");
    }
  });
}

void ReadNetworking(DocumentReader& in, ClusterConfiguration& out) {
  in.Object("networking", [&](DocumentReader& networking) {
    networking.Read("serviceSubnet", out.service_subnet, Zero::kDefault);
    networking.Read("podSubnet", out.pod_subnet, Zero::kDefault);
    networking.Read("dnsDomain", out.dns_domain, Zero::kDefault);
  });
}

void ReadAddons(DocumentReader& in, ClusterConfiguration& out, std::vector<std::string>& warnings) {
  in.Object("dns", [&](DocumentReader& dns) {
    dns.Read("disabled", out.dns_disabled);
    WithoutEffect(dns, {"imageRepository", "imageTag"}, "kube-proxy answers the cluster's DNS", warnings);
  });
  in.Object("proxy", [&](DocumentReader& proxy) { proxy.Read("disabled", out.proxy_disabled); });
}

}  // namespace

Result<ClusterConfiguration> ReadCluster(const boost::json::object& document,
                                         std::vector<std::string>& warnings) {
  ClusterConfiguration out;
  component::DocumentProblems problems{.kind = "ClusterConfiguration"};
  {
    DocumentReader in(document, problems);
    in.Ignore({"apiVersion", "kind"});
    in.Read("kubernetesVersion", out.kubernetes_version, Zero::kDefault);
    in.Read("controlPlaneEndpoint", out.control_plane_endpoint);
    in.Read("certificatesDir", out.certificates_dir, Zero::kDefault);
    in.Read("clusterName", out.cluster_name, Zero::kDefault);
    in.Read("encryptionAlgorithm", out.encryption_algorithm, Zero::kDefault);
    in.Read("certificateValidityPeriod", out.certificate_validity, Zero::kDefault);
    in.Read("caCertificateValidityPeriod", out.ca_validity, Zero::kDefault);
    in.Read("featureGates", out.feature_gates);
    ReadNetworking(in, out);
    ReadEtcd(in, out, warnings);
    ReadAddons(in, out, warnings);
    ReadComponent(in, "apiServer", out.api_server_args, warnings,
                  [&](DocumentReader& section) { section.Read("certSANs", out.certificate_names); });
    ReadComponent(in, "controllerManager", out.controller_manager_args, warnings);
    ReadComponent(in, "scheduler", out.scheduler_args, warnings);
    std::string repository;
    in.Read("imageRepository", repository);
    if (!repository.empty() && repository != "registry.k8s.io") {
      warnings.push_back(fmt::format("imageRepository has no effect: {}", kNoImages));
    }
  }
  for (const auto& [gate, on] : out.feature_gates) {
    warnings.push_back("featureGates." + gate +
                       " has no effect: kubeadm's own feature gates do not apply here");
  }
  KEELSON_RETURN_IF_ERROR(Refuse(problems, "ClusterConfiguration"));
  out.document = document;
  return out;
}

}  // namespace keelson::ctl
