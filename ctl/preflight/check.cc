#include "ctl/preflight/check.h"

#include <algorithm>
#include <boost/json/value.hpp>

#include "ctl/config/complete.h"
#include "ctl/etcd/settings.h"
#include "ctl/host/paths.h"
#include "ctl/preflight/host_checks.h"
#include "lib/base/ip.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

constexpr uint16_t kKubeletPort = 10250;
constexpr unsigned kControlPlaneCpus = 2;
constexpr uint64_t kControlPlaneMemoryMb = 1700;

bool IsIgnored(const std::vector<std::string>& ignored, const std::string& name) {
  return std::any_of(ignored.begin(), ignored.end(),
                     [&](const std::string& one) { return one == "all" || one == Lower(name); });
}

// Every node's. kube-proxy and kube-cni are optional: the cluster may have others.
void AddCommon(Checks& out, const NodeRegistration& node, bool resumes) {
  out.push_back(RuntimeCheck(node.cri_socket));
  out.push_back(SwapCheck());
  for (const char* program : {"losetup", "mount", "cp"}) out.push_back(ProgramCheck(program));
  out.push_back(CgroupCheck());
  out.push_back(HostNameCheck(node.name));
  out.push_back(KubeletVersionCheck());
  out.push_back(UnitCheck("kubelet"));
  if (!resumes) out.push_back(PortCheck(kKubeletPort));
}

void AddForwarding(Checks& out, bool v4, bool v6) {
  if (v4) out.push_back(FileContentCheck("/proc/sys/net/ipv4/ip_forward", "1"));
  if (v6) out.push_back(FileContentCheck("/proc/sys/net/ipv6/conf/default/forwarding", "1"));
}

// Which families the comma separated addresses or CIDRs have.
void FindFamilies(const std::string& texts, bool& v4, bool& v6) {
  for (const std::string& text : SplitList(texts)) {
    const auto address = IpAddress::Parse(text.substr(0, text.find('/')));
    if (address) (address->is_v4() ? v4 : v6) = true;
  }
}

void AddEtcd(Checks& out, const ClusterConfiguration& cluster, bool resumes) {
  if (!cluster.external_etcd) {
    out.push_back(ProgramCheck("etcd"));
    if (resumes) return;
    out.push_back(DirectoryAvailableCheck(paths::kEtcdData));
    if (!cluster.stacks_etcd()) return;
    for (Check& port : EtcdPortChecks()) out.push_back(std::move(port));
    return;
  }
  const ExternalEtcd& etcd = *cluster.external_etcd;
  for (const std::string* file : {&etcd.ca_file, &etcd.certificate_file, &etcd.key_file}) {
    if (!file->empty()) out.push_back(FileExistsCheck(*file, "ExternalEtcdClientCertificates"));
  }
}

bool HasKubeCni(const InitConfiguration& config) {
  const std::vector<std::string>& skipped = config.skip_phases;
  return std::none_of(skipped.begin(), skipped.end(),
                      [](const std::string& phase) { return phase == "addon" || phase == "addon/kube-cni"; });
}

}  // namespace

Result<> RunChecks(const Checks& checks, const Host& host, const std::vector<std::string>& ignored,
                   std::ostream& out) {
  std::string errors;
  for (const Check& check : checks) {
    Findings found = check.run(host);
    if (IsIgnored(ignored, check.name)) {
      found.warnings.insert(found.warnings.end(), found.errors.begin(), found.errors.end());
      found.errors.clear();
    }
    for (const std::string& warning : found.warnings) {
      out << "\t[WARNING " << check.name << "]: " << warning << "\n";
    }
    for (const std::string& error : found.errors) errors += "\t[ERROR " + check.name + "]: " + error + "\n";
  }
  if (errors.empty()) return {};
  out << "[preflight] Some fatal errors occurred:\n"
      << errors
      << "[preflight] If you know what you are doing, you can make a check non-fatal with "
         "`--ignore-preflight-errors=...`\n";
  return Error(Code::kInvalid, "preflight checks failed");
}

Result<std::vector<std::string>> IgnoredChecks(const std::vector<std::string>& given) {
  std::vector<std::string> out;
  for (const std::string& name : given) out.push_back(Lower(Trim(name)));
  const bool all = std::find(out.begin(), out.end(), "all") != out.end();
  if (all && out.size() > 1) {
    return Error(Code::kInvalid, "ignore-preflight-errors: Invalid value: \"" + Join(given, ",") +
                                     "\": don't specify individual checks if 'all' is used");
  }
  return out;
}

Checks ControlPlaneChecks(const InitConfiguration& config, bool resumes, bool static_pod) {
  const ClusterConfiguration& cluster = config.cluster;
  Checks out = {CpuCheck(kControlPlaneCpus), MemoryCheck(kControlPlaneMemoryMb),
                FirewallCheck({config.bind_port, kKubeletPort})};
  if (static_pod) {
    out.push_back(ProgramCheck("kube-controlplane"));
    out.push_back(UserCheck(paths::kControlPlaneGroup));
  } else {
    out.push_back(UnitCheck("kube-controlplane"));
  }
  if (!resumes) {
    out.push_back(PortCheck(config.bind_port));
    out.push_back(FileAvailableCheck(paths::kControlPlaneEnv));
    out.push_back(FileAvailableCheck(paths::kControlPlaneManifest));
  }
  for (const char* component : {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}) {
    // A control plane of static pods is here already.
    out.push_back(FileAvailableCheck(std::string(paths::kManifests) + "/" + component + ".yaml"));
  }
  bool v4 = false, v6 = false;
  FindFamilies(cluster.service_subnet + "," + cluster.pod_subnet + "," + config.advertise_address, v4, v6);
  AddForwarding(out, v4, v6);
  AddEtcd(out, cluster, resumes);
  if (HasKubeCni(config)) out.push_back(CniConfigCheck());
  return out;
}

Checks RuntimeConfigChecks(const std::string& cri_socket, const std::string& cgroup_driver, bool kube_cni) {
  return {RuntimeConfigCheck(cri_socket, cgroup_driver.empty() ? "systemd" : cgroup_driver, kube_cni)};
}

Checks EtcdPortChecks() { return {PortCheck(kEtcdClientPort), PortCheck(kEtcdPeerPort)}; }

Checks CniChecks() { return {CniConfigCheck()}; }

Checks InitChecks(const InitConfiguration& config, bool resumes, bool static_pod) {
  Checks out = ControlPlaneChecks(config, resumes, static_pod);
  AddCommon(out, config.node, resumes);
  const boost::json::value* driver = config.kubelet.if_contains("cgroupDriver");
  const bool named = driver && driver->is_string();
  for (Check& check : RuntimeConfigChecks(
           config.node.cri_socket, named ? std::string(driver->get_string()) : "", HasKubeCni(config))) {
    out.push_back(std::move(check));
  }
  return out;
}

Checks JoinChecks(const JoinConfiguration& config, bool resumes) {
  Checks out;
  if (!resumes) {
    for (const char* path : {paths::kKubeletConf, paths::kBootstrapConf}) {
      out.push_back(FileAvailableCheck(path));
    }
    // A control plane may have been given the shared certificates by hand.
    if (!config.control_plane) out.push_back(FileAvailableCheck(config.ca_file));
  }
  AddCommon(out, config.node, resumes);
  bool v4 = false, v6 = false;
  FindFamilies(HostOf(config.api_server_endpoint), v4, v6);
  AddForwarding(out, v4, v6);
  return out;
}

}  // namespace keelson::ctl
