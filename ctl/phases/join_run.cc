#include "ctl/phases/join_run.h"

#include <algorithm>
#include <boost/json/value.hpp>

#include "ctl/cluster/node_files.h"
#include "ctl/host/paths.h"
#include "ctl/host/units.h"
#include "ctl/phases/join_control_plane.h"
#include "ctl/phases/node_steps.h"
#include "ctl/phases/phase.h"
#include "ctl/preflight/check.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

constexpr std::string_view kMark = "join";

Result<> RefuseNamesake(JoinRun& run, const JoinedCluster& joined) {
  if (run.resumes() || !joined.has_ready_namesake) return {};
  return Error(Code::kAlreadyExists,
               "a Node with name \"" + run.config().node.name +
                   "\" and status \"Ready\" already exists in the cluster. You must delete the "
                   "existing Node or change the name of this new joining Node");
}

Result<> Preflight(JoinRun& run) {
  run.out() << "[preflight] Running pre-flight checks\n";
  const std::vector<std::string>& ignored = run.options().ignored_checks;
  KEELSON_RETURN_IF_ERROR(RunChecks({PrivilegedUserCheck()}, run.host(), ignored, run.err()));
  KEELSON_RETURN_IF_ERROR(RunChecks(JoinChecks(run.config(), run.resumes()), run.host(), ignored, run.err()));
  KEELSON_ASSIGN_OR_RETURN(const JoinedCluster* joined, run.Cluster());
  KEELSON_RETURN_IF_ERROR(RefuseNamesake(run, *joined));
  const boost::json::value* driver = joined->kubelet.if_contains("cgroupDriver");
  const bool kube_cni =
      std::find(joined->units.begin(), joined->units.end(), "kube-cni") != joined->units.end();
  KEELSON_RETURN_IF_ERROR(RunChecks(
      RuntimeConfigChecks(run.config().node.cri_socket,
                          driver && driver->is_string() ? std::string(driver->get_string()) : "", kube_cni),
      run.host(), ignored, run.err()));
  for (const std::string& unit : joined->units) {
    if (unit == "kube-cni") KEELSON_RETURN_IF_ERROR(RunChecks(CniChecks(), run.host(), ignored, run.err()));
    if (UnitExists(run.host(), unit)) continue;
    return Error(Code::kNotFound, "the cluster runs " + unit +
                                      " on every node, and this machine has no such unit: install "
                                      "keelson-node");
  }
  return join::CheckControlPlane(run);
}

Result<> KubeletStart(JoinRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const JoinedCluster* joined, run.Cluster());
  KEELSON_RETURN_IF_ERROR(RefuseNamesake(run, *joined));
  Host& host = run.host();
  // The kubelet of an earlier run may have its certificate by now; it needs no bootstrapping again.
  if (!host.Exists(paths::kKubeletConf)) {
    KEELSON_RETURN_IF_ERROR(host.Write(paths::kBootstrapConf, KubeconfigText(joined->access), 0600));
  }
  KEELSON_RETURN_IF_ERROR(host.Write(run.config().ca_file, joined->access.ca_pem, 0644));
  const bool resolved = UnitActive(host, "systemd-resolved");
  KEELSON_ASSIGN_OR_RETURN(KubeletPatches patches,
                           ReadPatches(run.config().patches_dir, run.out(), run.err()));
  return StartKubelet(host,
                      {FitToMachine(joined->kubelet, resolved), run.config().node, run.options().host_name,
                       true, std::move(patches)},
                      run.out());
}

Result<> KubeletWaitBootstrap(JoinRun& run) {
  if (run.config().dry_run) return {};
  run.out() << "[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap\n";
  const auto done = Await(
      "the kubelet to perform the TLS Bootstrap", run.config().timeouts.tls_bootstrap,
      [&]() -> Result<bool> { return run.host().Exists(paths::kKubeletConf); }, run.clock());
  if (!done) return done.error().Wrap("see 'systemctl status kubelet' and 'journalctl -xeu kubelet'");
  return run.host().Remove(paths::kBootstrapConf);
}

Result<> NodeUnits(JoinRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const JoinedCluster* joined, run.Cluster());
  const NodeAccess access{joined->access.server, joined->access.ca_pem, joined->cluster.cluster_name};
  const NodeRegistration& node = run.config().node;
  for (const std::string& unit : joined->units) {
    if (unit == "kube-cni") {
      KEELSON_RETURN_IF_ERROR(StartCni(run.host(), joined->cluster, node, access, run.out()));
    } else if (unit == "kube-proxy") {
      KEELSON_RETURN_IF_ERROR(
          StartProxy(run.host(), joined->cluster, node, joined->proxy, access, run.out()));
    } else {
      return Error(Code::kInvalid,
                   "the cluster wants a unit on every node that this release does not know: " + unit);
    }
  }
  if (!joined->optional_units.empty()) return StartCsi(run.host(), node, access, run.out());
  if (HasCsiUnit(run.host())) {
    run.err()
        << "[csi] WARNING: this machine has packages of CSI, and the cluster has no rights for them yet: "
           "'nodectl init phase addon csi' on a control plane that has the packages too, then 'nodectl "
           "join phase node-units' here\n";
  }
  return {};
}

constexpr Phase<JoinRun> kPhases[] = {
    {"preflight", "Run pre-flight checks and read the cluster's configuration", Preflight},
    {"control-plane-prepare/download-certs", "Download the certificates that control planes share",
     join::DownloadCerts},
    {"control-plane-prepare/certs", "Generate the certificates of the new control plane", join::Certificates},
    {"control-plane-prepare/kubeconfig", "Generate the kubeconfigs of the new control plane",
     join::Kubeconfigs},
    {"control-plane-prepare/control-plane", "With an external etcd: start kube-controlplane",
     join::StartControlPlane},
    {"check-etcd", "Check that the etcd cluster is healthy", join::CheckEtcd},
    {"kubelet-start", "Write the kubelet's settings and start it", KubeletStart},
    {"etcd-join", "Add this machine's etcd to the cluster's, and start kube-controlplane", join::JoinEtcd},
    {"kubelet-wait-bootstrap", "Wait for the kubelet's certificate", KubeletWaitBootstrap},
    {"control-plane-join/mark-control-plane", "Label and taint the node of the control plane",
     join::MarkControlPlane},
    {"wait-control-plane", "Wait for this machine's API server to be ready", join::WaitControlPlane},
    {"node-units", "Start kube-cni and kube-proxy, where the cluster's nodes run them", NodeUnits},
};

}  // namespace

std::string DescribeJoinPhases() { return DescribePhases(kPhases); }

JoinRun::JoinRun(Host& host, JoinConfiguration config, JoinOptions options, std::ostream& out,
                 std::ostream& err, Clock& clock)
    : host_(host),
      config_(std::move(config)),
      options_(std::move(options)),
      out_(out),
      err_(err),
      clock_(clock) {}

Result<InitRun*> JoinRun::ControlPlane() {
  if (control_plane_) return control_plane_.get();
  if (!config_.control_plane) return Error(Code::kInternal, "this machine joins as a worker");
  KEELSON_ASSIGN_OR_RETURN(const JoinedCluster* joined, Cluster());
  InitConfiguration config;
  config.cluster = joined->cluster;
  config.node = config_.node;
  config.advertise_address = config_.control_plane->advertise_address;
  config.bind_port = config_.control_plane->bind_port;
  config.timeouts = config_.timeouts;
  config.dry_run = config_.dry_run;
  InitOptions options;
  options.ignored_checks = options_.ignored_checks;
  options.host_name = options_.host_name;
  options.static_pod = options_.static_pod;
  options.static_pod_image = options_.static_pod_image;
  control_plane_ =
      std::make_unique<InitRun>(host_, std::move(config), std::move(options), out_, err_, clock_);
  return control_plane_.get();
}

Result<> JoinRun::Run(const std::string& only) {
  if (host_.Exists(paths::kUnfinished)) {
    KEELSON_ASSIGN_OR_RETURN(const std::string mark, host_.Read(paths::kUnfinished));
    if (Trim(mark) != kMark) {
      return Error(Code::kInvalid,
                   std::string(paths::kUnfinished) +
                       " is of another verb, which has not ended: run that again, or nodectl reset");
    }
    resumes_ = true;
  }
  std::vector<std::string_view> names;
  for (const Phase<JoinRun>& phase : kPhases) names.push_back(phase.name);
  KEELSON_RETURN_IF_ERROR(SelectPhases(names, only, config_.skip_phases));
  if (!only.empty()) return RunPhases(kPhases, only, config_.skip_phases, *this);
  if (SelectPhases(names, "preflight", config_.skip_phases)->size() == 1) {
    KEELSON_RETURN_IF_ERROR(RunPhase(kPhases[0], *this));
  }
  KEELSON_RETURN_IF_ERROR(host_.Write(paths::kUnfinished, std::string(kMark) + "\n", 0600));
  std::vector<std::string> skipped = config_.skip_phases;
  skipped.emplace_back("preflight");
  KEELSON_RETURN_IF_ERROR(RunPhases(kPhases, only, skipped, *this));
  KEELSON_RETURN_IF_ERROR(host_.Remove(paths::kUnfinished));
  if (config_.control_plane) {
    out_ << "\nThis node has joined the cluster and a new control plane instance was created:\n\n"
            "* Certificate signing request was sent to apiserver and approval was received.\n"
            "* The Kubelet was informed of the new secure connection details.\n"
            "* Control plane label and taint were applied to the new node.\n"
            "* The Kubernetes control plane instances scaled up.\n"
            "* A new etcd member was added to the local/stacked etcd cluster.\n\n"
            "To start administering your cluster from this node, you need to run the following as a regular "
            "user:\n\n"
            "  mkdir -p $HOME/.kube\n"
            "  sudo cp -i "
         << paths::kAdminConf
         << " $HOME/.kube/config\n"
            "  sudo chown $(id -u):$(id -g) $HOME/.kube/config\n\n"
            "Run 'kubectl get nodes' to see this node join the cluster.\n\n";
    return {};
  }
  out_ << "\nThis node has joined the cluster:\n"
          "* Certificate signing request was sent to apiserver and a response was received.\n"
          "* The Kubelet was informed of the new secure connection details.\n\n"
          "Run 'kubectl get nodes' on the control-plane to see this node join the cluster.\n\n";
  return {};
}

}  // namespace keelson::ctl
