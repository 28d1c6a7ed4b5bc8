#include "ctl/phases/control_plane.h"

#include "ctl/cluster/static_pod.h"
#include "ctl/etcd/settings.h"
#include "ctl/host/paths.h"
#include "ctl/host/runtime_facts.h"
#include "ctl/host/units.h"
#include "ctl/host/users.h"
#include "ctl/host/versions.h"
#include "ctl/phases/node_steps.h"
#include "lib/api/meta.h"

namespace keelson::ctl {
namespace {

constexpr char kControlPlaneUnit[] = "kube-controlplane";

// What the administrator chose, or else what the manifest has, or else what the runtime has for every pod.
Result<std::string> ImageFor(InitRun& run) {
  if (!run.options().static_pod_image.empty()) return run.options().static_pod_image;
  const Host& host = run.host();
  if (host.Exists(paths::kControlPlaneManifest)) {
    KEELSON_ASSIGN_OR_RETURN(const std::string text, host.Read(paths::kControlPlaneManifest));
    return ImageOfManifest(text);
  }
  const auto facts = host.AskRuntime(PathOfSocket(run.config().node.cri_socket));
  return SandboxImage(facts ? facts->config : "");
}

// Where `kubeadm join --control-plane` finds this machine's etcd; empty: nowhere. kubeadm adds a member of etcd 3.6 to the cluster. That
// writes its attributes in a form that 3.4 does not know: a member of 3.4 ends when it meets them, at each start again.
// Neither kubeadm nor etcd 3.6 checks the version before.
std::string EtcdUrlForKubeadm(InitRun& run) {
  const InitConfiguration& config = run.config();
  if (!config.cluster.stacks_etcd()) return "";
  const auto version = InstalledEtcdVersion(run.host());
  if (version && *ParseVersion(*version) >= Version{3, 5, 0}) {
    return EtcdUrl(config.advertise_address, kEtcdClientPort);
  }
  run.out()
      << "[control-plane] etcd on this machine is " << (version ? *version : "of an unknown version")
      << ": 'kubeadm join --control-plane' does not find it, as members of kubeadm's etcd 3.6 need 3.5 or "
         "later beside them\n";
  return "";
}

Result<StaticControlPlane> WantedPod(InitRun& run) {
  const Host& host = run.host();
  const InitConfiguration& config = run.config();
  StaticControlPlane out;
  KEELSON_ASSIGN_OR_RETURN(const UserIds user, FindUser(host, paths::kControlPlaneGroup));
  KEELSON_ASSIGN_OR_RETURN(out.image, ImageFor(run));
  out.flags = ControlPlaneFlags(ControlPlaneFiles(host));
  out.uid = user.uid;
  out.gid = user.gid;
  out.address = config.advertise_address;
  out.port = config.bind_port;
  out.etcd_url = EtcdUrlForKubeadm(run);
  // The program, its libraries and loader, certificates of the system, and whatever the flags name.
  for (const char* directory : {"/usr", "/lib", "/lib64", "/etc/ssl", "/etc/pki", paths::kKubernetes}) {
    if (host.Exists(directory)) out.directories.emplace_back(directory);
  }
  const std::string& pki = config.cluster.certificates_dir;
  if (!pki.starts_with(std::string(paths::kKubernetes) + "/")) out.directories.push_back(pki);
  out.begun = api::FormatTime(api::ToTime(run.clock().Now())) + " " + api::RandomSuffix();
  return out;
}

// As systemd makes them for the unit.
Result<> MakeDirectories(Host& host) {
  for (const auto& [mode, directory] :
       {std::pair("0700", paths::kControlPlaneData), std::pair("0750", paths::kControlPlaneLogs)}) {
    KEELSON_RETURN_IF_ERROR(host.Run({"install", "-d", "-o", paths::kControlPlaneGroup, "-g",
                                      paths::kControlPlaneGroup, "-m", mode, directory}));
  }
  return host.MakeDirectory(paths::kManifests, 0700);
}

Result<std::string> WriteManifest(InitRun& run) {
  KEELSON_ASSIGN_OR_RETURN(const StaticControlPlane wanted, WantedPod(run));
  Host& host = run.host();
  // Not enabled any more by what was before, and off as long as there is a manifest (kube-controlplane.service).
  KEELSON_RETURN_IF_ERROR(StopUnit(host, kControlPlaneUnit));
  KEELSON_RETURN_IF_ERROR(MakeDirectories(host));
  run.out() << "[control-plane] Creating static Pod manifest for \"" << kControlPlanePod << "\" in \""
            << paths::kControlPlaneManifest << "\", with the image " << wanted.image << "\n";
  KEELSON_RETURN_IF_ERROR(host.Write(paths::kControlPlaneManifest, ControlPlaneManifest(wanted), 0600));
  return wanted.begun;
}

// What the kubelet has written of the pod that began then: ready, or why not yet.
std::string MissingOf(const client::RestClient& api, const std::string& name, const std::string& begun) {
  const auto pod = api.Get<corev1::Pod>("kube-system", name);
  if (!pod) return pod.error().message();
  const auto& annotations = pod->metadata().annotations();
  const auto found = annotations.find(kBegunAnnotation);
  if (found == annotations.end() || found->second != begun) return "the pod before it is still there";
  for (const corev1::PodCondition& condition : pod->status().conditions()) {
    if (condition.type() == "Ready" && condition.status() == "True") return "";
  }
  return "the pod is not ready";
}

}  // namespace

bool HasStaticControlPlane(const Host& host) { return host.Exists(paths::kControlPlaneManifest); }

bool ControlPlaneStarted(const Host& host) {
  return HasStaticControlPlane(host) || UnitActive(host, kControlPlaneUnit);
}

Result<> StartControlPlane(InitRun& run) {
  if (run.static_pod()) {
    KEELSON_ASSIGN_OR_RETURN(const std::string begun, WriteManifest(run));
    return {};
  }
  // The kubelet ends the pod; until then the unit's process cannot have its ports and data, and systemd tries again.
  if (HasStaticControlPlane(run.host())) {
    KEELSON_RETURN_IF_ERROR(run.host().Remove(paths::kControlPlaneManifest));
  }
  run.out() << "[control-plane] Starting kube-controlplane\n";
  return RestartUnit(run.host(), kControlPlaneUnit);
}

Result<> RestartControlPlane(InitRun& run) {
  if (!run.static_pod()) return RestartUnitAndWait(run.host(), kControlPlaneUnit);
  KEELSON_ASSIGN_OR_RETURN(const std::string begun, WriteManifest(run));
  if (run.config().dry_run) return {};
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, run.Api());
  const std::string name = std::string(kControlPlanePod) + "-" + run.config().node.name;
  std::string missing;
  const auto done = Await(
      "the static pod " + name, run.config().timeouts.control_plane,
      [&]() -> Result<bool> {
        missing = MissingOf(api, name, begun);
        return missing.empty();
      },
      run.clock());
  if (!done) return done.error().Wrap(HowToSeeControlPlane(run.host()) + "; " + missing);
  return {};
}

std::string HowToSeeControlPlane(const Host& host) {
  if (HasStaticControlPlane(host)) {
    return "see 'journalctl -xeu kubelet', 'nodectl ps -a --name kube-controlplane' and 'nodectl logs ID'";
  }
  return "see 'systemctl status kube-controlplane' and 'journalctl -xeu kube-controlplane'";
}

}  // namespace keelson::ctl
