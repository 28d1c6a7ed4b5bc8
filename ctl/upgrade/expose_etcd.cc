#include "ctl/upgrade/expose_etcd.h"

#include <algorithm>

#include "ctl/cluster/node_files.h"
#include "ctl/config/complete.h"
#include "ctl/etcd/view.h"
#include "ctl/host/paths.h"
#include "ctl/phases/control_plane.h"
#include "ctl/phases/init_run.h"
#include "ctl/phases/node_steps.h"
#include "ctl/preflight/check.h"
#include "ctl/upgrade/upgrade_run.h"

namespace keelson::ctl {
namespace {

constexpr char kApiServer[] = "apiserver";

void AddMissing(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& name : from) {
    if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
  }
}

// The API server's certificate is kept by init as it is; here it gets the name of the endpoint. Its key stays.
Result<> NameEndpoint(InitRun& init) {
  const CertificateStore store = init.Certificates();
  KEELSON_ASSIGN_OR_RETURN(const std::vector<CertificatePlan> plans, PlanCertificates(init.config()));
  const auto plan = std::find_if(plans.begin(), plans.end(),
                                 [](const CertificatePlan& one) { return one.name == kApiServer; });
  if (plan == plans.end()) return Error(Code::kInternal, "no plan of the API server's certificate");
  const std::string file = store.directory + "/" + kApiServer + ".crt";
  KEELSON_ASSIGN_OR_RETURN(const std::string certificate, store.host.Read(file));
  KEELSON_ASSIGN_OR_RETURN(const crypto::CertificateInfo present, crypto::InspectCertificate(certificate));
  const crypto::CertificateSubject wanted = WithNames(present.subject, plan->subject);
  if (wanted == present.subject) return {};
  init.out() << "[certs] Renewing the certificate of the API server, for the control plane's endpoint too\n";
  KEELSON_ASSIGN_OR_RETURN(const Authority ca, init.Ca());
  KEELSON_ASSIGN_OR_RETURN(const std::string key,
                           store.host.Read(store.directory + "/" + kApiServer + ".key"));
  Result<std::string> fresh = SignFor(ca, key, wanted, plan->usages, plan->life, init.clock());
  if (!fresh) {
    return fresh.error().Wrap("the certificate " + file + " does not name the control plane's endpoint");
  }
  return store.host.Write(file, *fresh, 0644);
}

Result<> MakeCertificates(InitRun& init) {
  KEELSON_RETURN_IF_ERROR(NameEndpoint(init));
  for (const auto& make : {init::CertificateEtcdCa, init::CertificateEtcdServer, init::CertificateEtcdPeer,
                           init::CertificateEtcdHealthcheckClient, init::CertificateEtcdClient}) {
    KEELSON_RETURN_IF_ERROR(make(init));
  }
  return {};
}

Result<> RestartAtAddress(InitRun& init) {
  KEELSON_ASSIGN_OR_RETURN(const Authority ca, init.Ca());
  std::string before;
  if (init.host().Exists(paths::kControlPlaneEnv)) {
    KEELSON_ASSIGN_OR_RETURN(before, init.host().Read(paths::kControlPlaneEnv));
  }
  KEELSON_ASSIGN_OR_RETURN(
      const std::string text,
      ControlPlaneEnvironment(init.config(), ca.key_pem.has_value(), EtcdClusterIn(before)));
  init.out() << "[control-plane] Writing the flags of kube-controlplane to \"" << paths::kControlPlaneEnv
             << "\"\n";
  KEELSON_RETURN_IF_ERROR(init.host().Write(paths::kControlPlaneEnv, text, 0644));
  init.out() << "[control-plane] Restarting kube-controlplane, whose etcd listens at "
             << init.config().advertise_address << " then; pods stay\n";
  KEELSON_RETURN_IF_ERROR(RestartControlPlane(init));
  return init::WaitControlPlane(init);
}

// The member has told its cluster the loopback interface's address when it began.
Result<bool> SetPeerUrl(const Host& host, const std::string& url, std::ostream& out) {
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, FindEtcd(host, {}));
  const auto members = ListMembers(access);
  if (!members) {
    const Error& error = members.error();
    if (error.Is(Code::kUnavailable) || error.Is(Code::kTimeout)) return false;
    return error;
  }
  const auto has_url = [&](const etcd::MemberInfo& member) {
    return std::find(member.peer_urls.begin(), member.peer_urls.end(), url) != member.peer_urls.end();
  };
  if (std::any_of(members->begin(), members->end(), has_url)) return true;
  if (members->size() != 1) {
    return Error(Code::kInvalid,
                 "etcd has " + std::to_string(members->size()) + " members, and none is at " + url);
  }
  out << "[etcd] Setting the peer URL of this machine's member to " << url << "\n";
  const uint64_t id = members->front().id;
  auto set = WithAnyMember(access, [&](etcd::Member& member) { return member.SetPeerUrls(id, {url}); });
  if (set) return true;
  const bool passes = set.error().Is(Code::kUnavailable) || set.error().Is(Code::kTimeout);
  return passes ? Result<bool>(false) : set.error();
}

Result<> AwaitPeerUrl(InitRun& init) {
  const std::string url = EtcdUrl(init.config().advertise_address, kEtcdPeerPort);
  if (init.config().dry_run) {
    init.out() << "[dryrun] Would set the peer URL of this machine's member to " << url << "\n";
    return {};
  }
  const auto set = Await(
      "etcd at " + url, init.config().timeouts.etcd_api_call,
      [&] { return SetPeerUrl(init.host(), url, init.out()); }, init.clock());
  if (!set) return set.error().Wrap(HowToSeeControlPlane(init.host()));
  return {};
}

}  // namespace

Result<std::string> ChooseEndpoint(const std::string& present, const std::string& wanted) {
  if (present.empty() && wanted.empty()) {
    return Error(Code::kInvalid,
                 "--control-plane-endpoint is missing: the address or name that leads to all control planes");
  }
  if (!present.empty() && !wanted.empty() && present != wanted) {
    return Error(Code::kInvalid, "the cluster has the control plane endpoint " + present +
                                     ", which nodes and certificates know: it does not become " + wanted);
  }
  return present.empty() ? wanted : present;
}

crypto::CertificateSubject WithNames(crypto::CertificateSubject present,
                                     const crypto::CertificateSubject& wanted) {
  AddMissing(present.dns_names, wanted.dns_names);
  AddMissing(present.ip_addresses, wanted.ip_addresses);
  return present;
}

Result<std::string> ExposeEtcd(Host& host, const ExposeOptions& options, std::ostream& out, std::ostream& err,
                               Clock& clock) {
  KEELSON_RETURN_IF_ERROR(RunChecks({PrivilegedUserCheck()}, host, options.ignored_checks, err));
  const EtcdSettings settings = ReadEtcdSettings(host);
  if (!settings.servers.empty()) {
    return Error(Code::kInvalid, "kube-controlplane uses an etcd elsewhere: its own tools look after it");
  }
  UpgradeRun running(host, {.dry_run = options.dry_run}, out, err, clock);
  KEELSON_ASSIGN_OR_RETURN(const MachineSetup* machine, running.Machine());
  KEELSON_ASSIGN_OR_RETURN(const ClusterMaps* maps, running.Cluster());
  ClusterMaps wanted = *maps;
  KEELSON_ASSIGN_OR_RETURN(wanted.cluster.control_plane_endpoint,
                           ChooseEndpoint(maps->cluster.control_plane_endpoint, options.endpoint));
  KEELSON_ASSIGN_OR_RETURN(InitConfiguration config, RunningConfiguration(wanted, *machine));
  config.cluster.kubernetes_version = maps->cluster.kubernetes_version;
  config.dry_run = options.dry_run;
  // A run before this one may have made etcd listen there already.
  if (settings.address.empty()) {
    KEELSON_RETURN_IF_ERROR(RunChecks(EtcdPortChecks(), host, options.ignored_checks, err));
  }
  InitRun init(host, std::move(config), {}, out, err, clock);
  KEELSON_RETURN_IF_ERROR(MakeCertificates(init));
  KEELSON_RETURN_IF_ERROR(RestartAtAddress(init));
  KEELSON_RETURN_IF_ERROR(AwaitPeerUrl(init));
  // Machines that join ask the one that the endpoint leads to, and that is this one so far.
  KEELSON_RETURN_IF_ERROR(init::BootstrapTokens(init));
  KEELSON_RETURN_IF_ERROR(init::UploadKubeadmConfig(init));
  return wanted.cluster.control_plane_endpoint;
}

}  // namespace keelson::ctl
