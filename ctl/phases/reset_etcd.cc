#include "ctl/phases/reset_etcd.h"

#include <algorithm>

#include "ctl/cluster/copy_certs.h"
#include "ctl/etcd/view.h"
#include "ctl/host/paths.h"
#include "ctl/phases/etcd_members.h"
#include "ctl/pki/kubeconfig.h"
#include "ctl/token/discovery.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

constexpr std::chrono::seconds kAskPatience{5};
constexpr char kWayOut[] =
    "; if the cluster is to go altogether, or its etcd is lost: --skip-phases=remove-etcd-member";

// Client URLs that the cluster names, as far as its API answers.
std::vector<std::string> NamedEndpoints(const Host& host) {
  const auto text = host.Read(paths::kAdminConf);
  if (!text) return {};
  const auto kubeconfig = ParseKubeconfig(*text);
  if (!kubeconfig) return {};
  const auto api = ClientFor(*kubeconfig, kAskPatience);
  if (!api) return {};
  const auto map = api->Get<corev1::ConfigMap>("kube-system", kEtcdMap);
  if (!map || !map->data().contains(kEtcdEndpointsKey)) return {};
  return SplitList(map->data().at(kEtcdEndpointsKey));
}

// Other members before this machine's own, which ends when it has been removed.
Result<EtcdAccess> AccessOf(const Host& host, const EtcdSettings& settings) {
  KEELSON_ASSIGN_OR_RETURN(EtcdAccess out, FindEtcd(host, {}));
  const std::string own = EtcdUrl(settings.address, kEtcdClientPort);
  out.endpoints = NamedEndpoints(host);
  std::erase(out.endpoints, own);
  out.endpoints.push_back(own);
  // What the members themselves say is newer than what the API was told.
  if (const auto members = ListMembers(out)) {
    std::vector<std::string> urls = ClientUrls(*members, EtcdUrl(settings.address, kEtcdPeerPort));
    urls.push_back(own);
    out.endpoints = std::move(urls);
  }
  return out;
}

const SeenMember* FindOwn(const EtcdView& view, const std::string& peer_url) {
  for (const SeenMember& member : view.members) {
    const auto& urls = member.info.peer_urls;
    if (std::find(urls.begin(), urls.end(), peer_url) != urls.end()) return &member;
  }
  return nullptr;
}

Result<> Remove(const Host& host, const EtcdSettings& settings, bool ignores, bool dry_run, std::ostream& out,
                std::ostream& err) {
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, AccessOf(host, settings));
  KEELSON_ASSIGN_OR_RETURN(const EtcdView view, LookAtEtcd(access));
  const SeenMember* own = FindOwn(view, EtcdUrl(settings.address, kEtcdPeerPort));
  // The last member goes with the cluster.
  if (!own || view.members.size() == 1) return {};
  const uint64_t id = own->info.id;
  if (Result<> fine = CheckRemoval(view, id); !fine) {
    if (!ignores) return fine;
    err << "[reset] WARNING: " << fine.error().message() << "\n";
  }
  out << "[reset] Removing this machine's member " << etcd::MemberId(id) << " from etcd\n";
  if (dry_run) return {};
  return RemoveFromEtcd(access, id);
}

}  // namespace

Result<> RemoveEtcdMember(Host& host, const std::vector<std::string>& ignored, bool dry_run,
                          std::ostream& out, std::ostream& err) {
  const EtcdSettings settings = ReadEtcdSettings(host);
  const bool has_peers = settings.servers.empty() && !settings.address.empty();
  if (!has_peers || host.Exists(paths::kEtcdRemoved)) return {};
  // A kube-controlplane that has never run has no member.
  if (!host.Exists(std::string(paths::kEtcdData) + "/data")) return {};
  const bool ignores = std::any_of(ignored.begin(), ignored.end(), [](const std::string& name) {
    return name == "all" || name == Lower(kEtcdQuorumCheck);
  });
  if (Result<> removed = Remove(host, settings, ignores, dry_run, out, err); !removed) {
    const Error error =
        Error(removed.error().code(),
              "cannot remove this machine's member from etcd: " + removed.error().message() + kWayOut);
    if (!ignores) return error;
    err << "[reset] WARNING: " << error.message() << "\n";
  }
  // From here on this machine's etcd does not answer, and a second try is not to ask it.
  return host.Write(paths::kEtcdRemoved, "\n", 0600);
}

}  // namespace keelson::ctl
