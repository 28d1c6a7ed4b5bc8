#include "ctl/phases/node_steps.h"

#include <algorithm>

#include "ctl/cluster/node_files.h"
#include "ctl/host/paths.h"
#include "ctl/host/units.h"
#include "ctl/output.h"
#include "ctl/pki/kubeconfig.h"
#include "lib/api/duration.h"
#include "lib/base/pause.h"

namespace keelson::ctl {
namespace {

constexpr std::chrono::milliseconds kPoll{500};

Result<> RequireUnit(const Host& host, const std::string& unit, const std::string& package) {
  KEELSON_RETURN_IF_ERROR(RequireInitSystem(host));
  if (UnitExists(host, unit)) return {};
  return Error(Code::kNotFound, "the cluster runs " + unit +
                                    " on every node, and this machine has no such unit: install " + package);
}

std::string AccessText(const NodeAccess& access, const std::string& user) {
  Kubeconfig config;
  config.server = access.server;
  config.ca_pem = access.ca_pem;
  config.cluster = access.cluster_name;
  config.user = user;
  config.certificate_file = paths::kKubeletPem;
  return KubeconfigText(config);
}

bool Label(corev1::Node& node, const char* key) {
  return node.mutable_metadata()->mutable_labels()->insert({key, ""}).second;
}

bool AddTaint(corev1::Node& node, const Taint& wanted) {
  const auto& present = node.spec().taints();
  const bool there = std::any_of(present.begin(), present.end(), [&](const corev1::Taint& taint) {
    return taint.key() == wanted.key && taint.effect() == wanted.effect;
  });
  if (there) return false;
  corev1::Taint& taint = *node.mutable_spec()->add_taints();
  taint.set_key(wanted.key);
  taint.set_effect(wanted.effect);
  if (!wanted.value.empty()) taint.set_value(wanted.value);
  return true;
}

}  // namespace

Result<> MarkNode(const client::RestClient& api, const NodeRegistration& registration,
                  std::chrono::seconds patience, Clock& clock) {
  const auto mark = [&](corev1::Node& node) -> Result<bool> {
    bool changed = Label(node, kControlPlaneRole);
    changed = Label(node, kNotBalanced) || changed;
    for (const Taint& taint : *registration.taints) changed = AddTaint(node, taint) || changed;
    return changed;
  };
  const auto done = Await(
      "the kubelet to register the node", patience,
      [&]() -> Result<bool> {
        const auto marked = client::UpdateWithRetry<corev1::Node>(api, "", registration.name, "", mark);
        if (marked) return true;
        if (marked.error().Is(Code::kNotFound) || marked.error().Is(Code::kUnavailable)) return false;
        return marked.error();
      },
      clock);
  if (!done) return done.error().Wrap("see 'systemctl status kubelet' and 'journalctl -xeu kubelet'");
  return {};
}

Result<> StartKubelet(Host& host, const KubeletSettings& settings, std::ostream& out) {
  const boost::json::object instance = InstanceDocument(settings.node);
  const std::string flags = KubeletFlags(settings.node, settings.host_name, settings.register_taints);
  KEELSON_ASSIGN_OR_RETURN(const boost::json::object document,
                           ApplyPatches(WithInstance(settings.cluster, instance), settings.patches));
  KEELSON_RETURN_IF_ERROR(host.MakeDirectory(paths::kManifests, 0700));
  out << "[kubelet-start] Writing kubelet environment file with flags to file \"" << paths::kKubeletFlags
      << "\"\n";
  KEELSON_RETURN_IF_ERROR(host.MakeDirectory(paths::kKubelet, 0700));
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kKubeletFlags, flags, 0644));
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kKubeletInstanceConfig, ToYaml(instance), 0644));
  out << "[kubelet-start] Writing kubelet configuration to file \"" << paths::kKubeletConfig << "\"\n";
  // The last file: the unit starts with it.
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kKubeletConfig, ToYaml(document), 0644));
  out << "[kubelet-start] Starting the kubelet\n";
  return RestartUnit(host, "kubelet");
}

Result<> StartProxy(Host& host, const ClusterConfiguration& cluster, const NodeRegistration& node,
                    const boost::json::object& proxy, const NodeAccess& access, std::ostream& out) {
  KEELSON_RETURN_IF_ERROR(RequireUnit(host, "kube-proxy", "keelson-proxy"));
  KEELSON_ASSIGN_OR_RETURN(const std::string environment, ProxyEnvironment(cluster, node));
  boost::json::object document = proxy;
  // Whatever the cluster's document says of kube-proxy in a pod.
  boost::json::value& connection = document["clientConnection"];
  if (!connection.is_object()) connection.emplace_object();
  connection.get_object()["kubeconfig"] = paths::kProxyConf;
  out << "[kube-proxy] Writing \"" << paths::kProxyConfig << "\" and starting kube-proxy\n";
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kProxyConfig, ToYaml(document), 0644));
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kProxyEnv, environment, 0644));
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kProxyConf, AccessText(access, "kube-proxy"), 0600));
  return RestartUnit(host, "kube-proxy");
}

Result<> StartCni(Host& host, const ClusterConfiguration& cluster, const NodeRegistration& node,
                  const NodeAccess& access, std::ostream& out) {
  KEELSON_RETURN_IF_ERROR(RequireUnit(host, "kube-cni", "keelson-cni"));
  out << "[kube-cni] Writing \"" << paths::kCniConf << "\" and starting kube-cni\n";
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kCniEnv, CniEnvironment(cluster, node), 0644));
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kCniConf, AccessText(access, "kube-cni"), 0600));
  return RestartUnit(host, "kube-cni");
}

bool HasCsiUnit(const Host& host) {
  return std::any_of(std::begin(kCsiUnits), std::end(kCsiUnits),
                     [&](const char* unit) { return UnitExists(host, unit); });
}

Result<> StartCsi(Host& host, const NodeRegistration& node, const NodeAccess& access, std::ostream& out) {
  if (!HasCsiUnit(host)) return {};
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kCsiEnv, CsiEnvironment(node), 0644));
  for (const std::string unit : kCsiUnits) {
    if (!UnitExists(host, unit)) continue;
    if (unit == "keelson-csi-controller") {
      KEELSON_RETURN_IF_ERROR(host.Write(paths::kCsiConf, AccessText(access, "csi-controller"), 0600));
    }
    out << "[csi] Starting " << unit << "\n";
    KEELSON_RETURN_IF_ERROR(RestartUnit(host, unit));
  }
  return {};
}

Result<> Await(const std::string& what, std::chrono::seconds patience,
               const std::function<Result<bool>()>& done, Clock& clock) {
  const SteadyTime end = clock.SteadyNow() + patience;
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(const bool finished, done());
    if (finished) return {};
    if (clock.SteadyNow() >= end) {
      return Error(Code::kTimeout, "timed out waiting for " + what + " after " +
                                       api::FormatGoDuration(std::chrono::nanoseconds(patience).count()));
    }
    Pause(clock, kPoll, {});
  }
}

}  // namespace keelson::ctl
