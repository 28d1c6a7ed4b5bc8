// Phases of init that start daemons and wait for them.
#include "ctl/cluster/node_files.h"
#include "ctl/config/complete.h"
#include "ctl/host/paths.h"
#include "ctl/host/units.h"
#include "ctl/phases/control_plane.h"
#include "ctl/phases/init_run.h"
#include "ctl/phases/node_steps.h"
#include "ctl/preflight/check.h"
#include "ctl/token/discovery.h"
#include "lib/api/duration.h"

namespace keelson::ctl::init {
namespace {

std::string DurationText(std::chrono::nanoseconds time) {
  constexpr int64_t kMillisecond = 1'000'000;
  return api::FormatGoDuration(time.count() / kMillisecond * kMillisecond);
}

// The server answers "ok" at /readyz. Its certificate is verified with the cluster's CA.
bool IsReady(const client::RestClient& api) {
  client::ApiRequest request;
  request.target = "/readyz";
  const auto answer = api.transport().Do(request, std::chrono::seconds(5), {});
  return answer && answer->status == 200;
}

}  // namespace

Result<> Preflight(InitRun& run) {
  run.out() << "[preflight] Running pre-flight checks\n";
  const std::vector<std::string>& ignored = run.options().ignored_checks;
  KEELSON_RETURN_IF_ERROR(RunChecks({PrivilegedUserCheck()}, run.host(), ignored, run.err()));
  return RunChecks(InitChecks(run.config(), run.resumes(), run.static_pod()), run.host(), ignored, run.err());
}

Result<> EtcdLocal(InitRun& run) {
  if (run.config().cluster.external_etcd) return {};
  if (!run.host().HasProgram("etcd")) {
    return Error(Code::kNotFound,
                 "etcd not found in system path: install it, or name an external one in the configuration");
  }
  run.out() << "[etcd] kube-controlplane starts an etcd of its own, with its data in \"" << paths::kEtcdData
            << "\"";
  if (run.config().cluster.stacks_etcd()) {
    run.out() << ", which others can join at " << run.config().advertise_address;
  }
  run.out() << "\n";
  return {};
}

Result<> ControlPlane(InitRun& run) {
  KEELSON_RETURN_IF_ERROR(RequireInitSystem(run.host()));
  KEELSON_ASSIGN_OR_RETURN(const Authority ca, run.Ca());
  KEELSON_ASSIGN_OR_RETURN(
      const std::string text,
      ControlPlaneEnvironment(run.config(), ca.key_pem.has_value(), run.options().etcd_cluster));
  if (!ca.key_pem) {
    run.err() << "[control-plane] WARNING: the key of the CA is not on this machine: no controller signs "
                 "certificates\n";
  }
  run.out() << "[control-plane] Writing the flags of kube-controlplane to \"" << paths::kControlPlaneEnv
            << "\"\n";
  KEELSON_RETURN_IF_ERROR(run.host().Write(paths::kControlPlaneEnv, text, 0644));
  return StartControlPlane(run);
}

Result<> KubeletStart(InitRun& run) {
  const bool resolved = UnitActive(run.host(), "systemd-resolved");
  KubeletSettings settings{{}, run.config().node, run.options().host_name, true};
  KEELSON_ASSIGN_OR_RETURN(settings.cluster, KubeletDocument(run.config(), resolved));
  KEELSON_ASSIGN_OR_RETURN(settings.patches, ReadPatches(run.config().patches_dir, run.out(), run.err()));
  return StartKubelet(run.host(), settings, run.out());
}

Result<> WaitControlPlane(InitRun& run) {
  if (run.config().dry_run) return {};
  const std::chrono::seconds patience = run.config().timeouts.control_plane;
  KEELSON_ASSIGN_OR_RETURN(const Authority ca, run.Ca());
  Kubeconfig anonymous;
  anonymous.server = "https://" + HostAndPort(run.config().advertise_address, run.config().bind_port);
  anonymous.ca_pem = ca.certificate_pem;
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api,
                           ClientFor(anonymous, run.config().timeouts.api_call));
  run.out() << "[wait-control-plane] Waiting for the control plane at " << anonymous.server
            << "/readyz. This can take up to " << DurationText(patience) << "\n";
  const SteadyTime begin = run.clock().SteadyNow();
  SteadyTime told = begin;
  const auto done = Await(
      "the control plane", patience,
      [&]() -> Result<bool> {
        if (IsReady(api)) return true;
        if (run.clock().SteadyNow() - told < std::chrono::seconds(10)) return false;
        told = run.clock().SteadyNow();
        run.out() << "[wait-control-plane] Still waiting after " << DurationText(told - begin) << "\n";
        return false;
      },
      run.clock());
  if (!done) {
    return done.error().Wrap("kube-controlplane is not healthy: " + HowToSeeControlPlane(run.host()));
  }
  run.out() << "[control-plane-check] kube-controlplane is healthy after "
            << DurationText(run.clock().SteadyNow() - begin) << "\n";
  // From here on admin.conf has its rights.
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient admin, run.Api());
  return {};
}

}  // namespace keelson::ctl::init
