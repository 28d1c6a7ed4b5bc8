// Phases of init that finish the node of the control plane, and its addons.
#include <algorithm>

#include "ctl/cluster/node_files.h"
#include "ctl/config/complete.h"
#include "ctl/host/paths.h"
#include "ctl/host/units.h"
#include "ctl/phases/cluster_maps.h"
#include "ctl/phases/init_run.h"
#include "ctl/phases/node_steps.h"
#include "ctl/pki/kubeconfig.h"

namespace keelson::ctl::init {
namespace {

Result<NodeAccess> AccessOf(InitRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const Authority ca, run.Ca());
  KEELSON_ASSIGN_OR_RETURN(const std::string endpoint, ApiEndpoint(run.config()));
  return NodeAccess{"https://" + endpoint, ca.certificate_pem, run.config().cluster.cluster_name};
}

// Adds units to those that the nodes of the cluster run: every node, or those that have them.
Result<> AddNodeUnits(InitRun& run, std::vector<std::string> UnitsOfNodes::*which,
                      const std::vector<std::string>& added) {
  UnitsOfNodes units;
  if (!run.config().dry_run) {
    KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
    const auto present = api.Get<corev1::ConfigMap>("kube-system", kNodeUnitsMap);
    if (present) units = UnitsIn(*present);
    if (!present && !present.error().Is(Code::kNotFound)) return present.error();
  }
  std::vector<std::string>& list = units.*which;
  for (const std::string& unit : added) {
    if (std::find(list.begin(), list.end(), unit) == list.end()) list.push_back(unit);
  }
  return run.Write(NodeUnitsObjects(units));
}

}  // namespace

Result<> MarkControlPlane(InitRun& run) {
  const NodeRegistration& registration = run.config().node;
  run.out() << "[mark-control-plane] Marking the node " << registration.name
            << " as control-plane by adding the labels: [" << kControlPlaneRole << " " << kNotBalanced
            << "]\n";
  if (run.config().dry_run) return {};
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
  return MarkNode(api, registration, run.config().timeouts.kubelet, run.clock());
}

Result<> FinalizeKubelet(InitRun& run) {
  Host& host = run.host();
  if (!host.Exists(paths::kKubeletPem)) {
    run.out() << "[kubelet-finalize] \"" << paths::kKubeletPem
              << "\" does not exist: kubelet.conf stays as it is\n";
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(const std::string text, host.Read(paths::kKubeletConf));
  KEELSON_ASSIGN_OR_RETURN(Kubeconfig config, ParseKubeconfig(text));
  if (config.certificate_file == paths::kKubeletPem) return {};
  run.out() << "[kubelet-finalize] Updating \"" << paths::kKubeletConf
            << "\" to point to a rotatable kubelet client certificate and key\n";
  config.certificate_pem = config.key_pem = "";
  config.certificate_file = paths::kKubeletPem;
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kKubeletConf, KubeconfigText(config), 0600));
  return RestartUnit(host, "kubelet");
}

Result<> AddonDns(InitRun& run) {
  if (run.config().cluster.dns_disabled) return {};
  KEELSON_ASSIGN_OR_RETURN(const WantedObjects objects, DnsObjects(run.config().cluster));
  KEELSON_RETURN_IF_ERROR(run.Write(objects));
  run.out()
      << "[addons] Applied essential addon: the Service kube-dns, which kube-proxy answers on every node\n";
  return {};
}

Result<> AddonProxy(InitRun& run) {
  const ClusterConfiguration& cluster = run.config().cluster;
  if (cluster.proxy_disabled) return {};
  KEELSON_RETURN_IF_ERROR(AddNodeUnits(run, &UnitsOfNodes::required, {"kube-proxy"}));
  const boost::json::object document = ProxyDocument(cluster, run.config().proxy);
  KEELSON_RETURN_IF_ERROR(run.Write(ProxyObjects(document)));
  KEELSON_ASSIGN_OR_RETURN(const NodeAccess access, AccessOf(run));
  KEELSON_RETURN_IF_ERROR(StartProxy(run.host(), cluster, run.config().node, document, access, run.out()));
  run.out() << "[addons] Applied essential addon: kube-proxy\n";
  return {};
}

Result<> AddonCni(InitRun& run) {
  KEELSON_RETURN_IF_ERROR(AddNodeUnits(run, &UnitsOfNodes::required, {"kube-cni"}));
  KEELSON_RETURN_IF_ERROR(run.Write(CniObjects()));
  KEELSON_ASSIGN_OR_RETURN(const NodeAccess access, AccessOf(run));
  KEELSON_RETURN_IF_ERROR(StartCni(run.host(), run.config().cluster, run.config().node, access, run.out()));
  run.out() << "[addons] Applied essential addon: kube-cni\n";
  return {};
}

Result<> AddonCsi(InitRun& run) {
  if (!HasCsiUnit(run.host())) return {};
  return WriteCsi(run);
}

Result<> WriteCsi(InitRun& run) {
  KEELSON_RETURN_IF_ERROR(
      AddNodeUnits(run, &UnitsOfNodes::optional, {std::begin(kCsiUnits), std::end(kCsiUnits)}));
  KEELSON_RETURN_IF_ERROR(run.Write(CsiObjects()));
  KEELSON_ASSIGN_OR_RETURN(const NodeAccess access, AccessOf(run));
  KEELSON_RETURN_IF_ERROR(StartCsi(run.host(), run.config().node, access, run.out()));
  run.out() << "[addons] Applied addon: the CSI driver local.csi.keelson.dev, with the class local\n";
  return {};
}

}  // namespace keelson::ctl::init
