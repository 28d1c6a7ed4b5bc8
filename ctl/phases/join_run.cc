#include "ctl/phases/join_run.h"

#include <algorithm>

#include "ctl/cluster/node_files.h"
#include "ctl/host/paths.h"
#include "ctl/host/units.h"
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
  for (const std::string& unit : joined->units) {
    if (unit == "kube-cni") KEELSON_RETURN_IF_ERROR(RunChecks(CniChecks(), run.host(), ignored, run.err()));
    if (UnitExists(run.host(), unit)) continue;
    return Error(Code::kNotFound, "the cluster runs " + unit +
                                      " on every node, and this machine has no such unit: install "
                                      "keelson-node");
  }
  return {};
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
  return StartKubelet(
      host, {FitToMachine(joined->kubelet, resolved), run.config().node, run.options().host_name, true},
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
  return {};
}

constexpr Phase<JoinRun> kPhases[] = {
    {"preflight", "Run pre-flight checks and read the cluster's configuration", Preflight},
    {"kubelet-start", "Write the kubelet's settings and start it", KubeletStart},
    {"kubelet-wait-bootstrap", "Wait for the kubelet's certificate", KubeletWaitBootstrap},
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
    if (auto fine = Preflight(*this); !fine) return fine.error().Wrap("error execution phase preflight");
  }
  KEELSON_RETURN_IF_ERROR(host_.Write(paths::kUnfinished, std::string(kMark) + "\n", 0600));
  std::vector<std::string> skipped = config_.skip_phases;
  skipped.emplace_back("preflight");
  KEELSON_RETURN_IF_ERROR(RunPhases(kPhases, only, skipped, *this));
  KEELSON_RETURN_IF_ERROR(host_.Remove(paths::kUnfinished));
  out_ << "\nThis node has joined the cluster:\n"
          "* Certificate signing request was sent to apiserver and a response was received.\n"
          "* The Kubelet was informed of the new secure connection details.\n\n"
          "Run 'kubectl get nodes' on the control-plane to see this node join the cluster.\n\n";
  return {};
}

}  // namespace keelson::ctl
