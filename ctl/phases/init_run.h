// One run of `nodectl init`: what its phases share.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "ctl/cluster/objects.h"
#include "ctl/config/documents.h"
#include "ctl/host/host.h"
#include "ctl/phases/phase.h"
#include "ctl/pki/certificates.h"
#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

struct InitOptions {
  std::vector<std::string> ignored_checks;  // in lower case
  bool skip_token_print = false;
  bool upload_certs = false, skip_certificate_key_print = false;
  std::string host_name;                // the machine's, in lower case
  std::string etcd_cluster = {};        // of a control plane that joins: ControlPlaneEnvironment()
  std::optional<bool> static_pod = {};  // kube-controlplane is one; nullopt: as this machine has it
  std::string static_pod_image = {};    // of its container; empty: the one that it has, or the sandboxes'
  PhaseLog* log = nullptr;              // of phases; null: none. Outlives the run
};

class InitRun {
 public:
  // References outlive the run. `config` is complete.
  InitRun(Host& host, InitConfiguration config, InitOptions options, std::ostream& out, std::ostream& err,
          Clock& clock = Clock::Real());

  // All phases but those of config.skip_phases, or `only` one. A run of all phases leaves a mark on the machine until it has
  // ended: the next one then goes on with the same tokens, and takes what it finds for its own.
  Result<> Run(const std::string& only);

  // ---- for phases ----

  Host& host() { return host_; }
  const InitConfiguration& config() const { return config_; }
  const InitOptions& options() const { return options_; }
  std::ostream& out() { return out_; }
  std::ostream& err() { return err_; }
  Clock& clock() { return clock_; }
  PhaseLog* log() { return options_.log; }
  bool resumes() const { return resumes_; }
  bool static_pod() const;
  void set_etcd_cluster(std::string cluster) { options_.etcd_cluster = std::move(cluster); }
  CertificateStore Certificates();
  Result<> EnsurePlanned(std::string_view certificate);
  // The same for etcd's, which only clusters with members on several machines have.
  Result<> EnsurePlannedOfEtcd(std::string_view certificate);
  Result<> EnsurePlannedKubeconfig(std::string_view name);
  // As super-admin, or as admin where the administrator has removed that file. Makes sure that the two have their rights.
  Result<client::RestClient> Api();
  Result<> Write(const WantedObjects& objects);  // or describe them, in a dry run
  Result<Authority> Ca();

 private:
  Result<> ReadMark();
  Result<> SetMark();

  Host& host_;
  InitConfiguration config_;
  InitOptions options_;
  std::ostream& out_;
  std::ostream& err_;
  Clock& clock_;
  bool resumes_ = false, marks_ = false;
  std::optional<client::RestClient> api_;
};

std::string DescribeInitPhases();

// Phases, in the files init_files.cc, init_daemons.cc, init_cluster.cc and init_node.cc.
namespace init {
Result<> Preflight(InitRun& run);
Result<> CertificateCa(InitRun& run);
Result<> CertificateApiServer(InitRun& run);
Result<> CertificateKubeletClient(InitRun& run);
Result<> CertificateFrontProxyCa(InitRun& run);
Result<> CertificateFrontProxyClient(InitRun& run);
Result<> CertificateEtcdCa(InitRun& run);
Result<> CertificateEtcdServer(InitRun& run);
Result<> CertificateEtcdPeer(InitRun& run);
Result<> CertificateEtcdHealthcheckClient(InitRun& run);
Result<> CertificateEtcdClient(InitRun& run);
Result<> CertificateServiceAccounts(InitRun& run);
Result<> KubeconfigAdmin(InitRun& run);
Result<> KubeconfigSuperAdmin(InitRun& run);
Result<> KubeconfigKubelet(InitRun& run);
Result<> KubeconfigControllerManager(InitRun& run);
Result<> KubeconfigScheduler(InitRun& run);
Result<> EtcdLocal(InitRun& run);
Result<> ControlPlane(InitRun& run);
Result<> KubeletStart(InitRun& run);
Result<> WaitControlPlane(InitRun& run);
Result<> UploadKubeadmConfig(InitRun& run);
Result<> UploadKubeletConfig(InitRun& run);
Result<> UploadCerts(InitRun& run);
Result<> MarkControlPlane(InitRun& run);
Result<> BootstrapTokens(InitRun& run);
Result<> FinalizeKubelet(InitRun& run);
Result<> AddonDns(InitRun& run);
Result<> AddonProxy(InitRun& run);
Result<> AddonCni(InitRun& run);
Result<> AddonCsi(InitRun& run);  // where this machine has a unit of CSI
Result<> WriteCsi(InitRun& run);  // in any case
Result<> ShowJoinCommand(InitRun& run);
}  // namespace init

}  // namespace keelson::ctl
