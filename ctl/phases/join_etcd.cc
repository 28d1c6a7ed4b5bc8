// Phases of join that add the machine's etcd to the cluster's: first without a vote, so that the quorum never depends on a
// member that has no data yet.
#include <algorithm>
#include <functional>
#include <utility>

#include "ctl/cluster/copy_certs.h"
#include "ctl/etcd/view.h"
#include "ctl/host/paths.h"
#include "ctl/host/units.h"
#include "ctl/host/versions.h"
#include "ctl/phases/control_plane.h"
#include "ctl/phases/join_control_plane.h"
#include "ctl/phases/node_steps.h"
#include "lib/api/duration.h"
#include "lib/base/text.h"

namespace keelson::ctl::join {
namespace {

std::string PeerUrl(const InitRun& plane) { return EtcdUrl(plane.config().advertise_address, kEtcdPeerPort); }

// Members that the cluster names, with this machine's certificates for etcd's clients.
Result<EtcdAccess> AccessOf(InitRun& plane) {
  const std::string pki = plane.config().cluster.certificates_dir + "/etcd/";
  EtcdAccess out;
  KEELSON_ASSIGN_OR_RETURN(out.credentials.ca_pem, plane.host().Read(pki + "ca.crt"));
  KEELSON_ASSIGN_OR_RETURN(out.credentials.certificate_pem,
                           plane.host().Read(pki + "healthcheck-client.crt"));
  KEELSON_ASSIGN_OR_RETURN(out.credentials.key_pem, plane.host().Read(pki + "healthcheck-client.key"));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, plane.Api());
  const auto map = api.Get<corev1::ConfigMap>("kube-system", kEtcdMap);
  if (!map && map.error().Is(Code::kNotFound)) {
    return Error(
        Code::kNotFound,
        "ConfigMap kube-system/keelson-etcd does not exist: the etcd of this cluster is not one that "
        "nodectl has made for several machines");
  }
  if (!map) return map.error().Wrap("ConfigMap kube-system/keelson-etcd");
  if (map->data().contains(kEtcdEndpointsKey)) out.endpoints = SplitList(map->data().at(kEtcdEndpointsKey));
  // Not this machine's own, of an earlier life.
  std::erase(out.endpoints, EtcdUrl(plane.config().advertise_address, kEtcdClientPort));
  return out;
}

// Whether another try may end otherwise: etcd refuses a change while it has not come to rest after the one before.
bool Passes(const Error& error) {
  return error.Is(Code::kConflict) || error.Is(Code::kUnavailable) || error.Is(Code::kTimeout) ||
         error.Is(Code::kTooManyRequests);
}

class EtcdJoin {
 public:
  EtcdJoin(InitRun& plane, EtcdAccess access)
      : plane_(plane), access_(std::move(access)), peer_url_(PeerUrl(plane)) {}

  // One step; true: the machine's member has its vote and is started.
  Result<bool> Step() {
    Result<std::vector<etcd::MemberInfo>> members = ListMembers(access_);
    if (!members) return Retry(members.error());
    const bool has_data = plane_.host().Exists(std::string(paths::kEtcdData) + "/data/member");
    const JoinStep step = PlanJoin(*members, peer_url_, has_data);
    switch (step.action) {
      case JoinStep::Do::kNothing:
        // A run after one that was killed late finds it running.
        if (!ControlPlaneStarted(plane_.host())) KEELSON_RETURN_IF_ERROR(Start(*members));
        return true;
      case JoinStep::Do::kReplace:
        Say("[etcd] The data of this machine's member is lost; removing the member");
        return Change([&](etcd::Member& member) { return member.Remove(step.id); });
      case JoinStep::Do::kAdd:
        if (has_data && !started_) {
          return Error(Code::kInvalid,
                       std::string(paths::kEtcdData) +
                           " has data of a member that the cluster does not know: run nodectl "
                           "reset on this machine first");
        }
        Say("[etcd] Announcing the new etcd member joining the cluster at " + peer_url_);
        return Change([&](etcd::Member& member) -> Result<> {
          KEELSON_RETURN_IF_ERROR(member.AddLearner(peer_url_));
          return {};
        });
      case JoinStep::Do::kStart:
        break;
    }
    KEELSON_RETURN_IF_ERROR(Start(*members));
    Say("[etcd] Waiting for the new etcd member to join the cluster. This can take up to " + patience_text());
    return Change([&](etcd::Member& member) { return member.Promote(step.id); });
  }

  const std::string& last() const { return last_; }  // why the last step was no success
  const EtcdAccess& access() const { return access_; }
  std::string patience_text() const {
    return api::FormatGoDuration(std::chrono::nanoseconds(plane_.config().timeouts.etcd_api_call).count());
  }

 private:
  Result<bool> Retry(const Error& error) {
    if (!Passes(error)) return error;
    last_ = error.message();
    return false;
  }

  Result<bool> Change(const std::function<Result<>(etcd::Member&)>& change) {
    if (Result<> done = WithAnyMember(access_, change); !done) return Retry(done.error());
    return false;
  }

  // Once a run: a kube-controlplane that waits for its member is not started again.
  Result<> Start(const std::vector<etcd::MemberInfo>& members) {
    if (std::exchange(started_, true)) return {};
    plane_.set_etcd_cluster(InitialCluster(members, plane_.config().node.name, peer_url_));
    return init::ControlPlane(plane_);
  }

  void Say(const std::string& line) {
    if (line != said_) plane_.out() << line << "\n";
    said_ = line;
  }

  InitRun& plane_;
  const EtcdAccess access_;
  const std::string peer_url_;
  bool started_ = false;
  std::string said_, last_;
};

}  // namespace

Result<> CheckEtcd(JoinRun& run) {
  if (!run.config().control_plane || run.config().dry_run) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * plane, run.ControlPlane());
  if (!plane->config().cluster.stacks_etcd()) return {};
  run.out() << "[check-etcd] Checking that the etcd cluster is healthy\n";
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, AccessOf(*plane));
  KEELSON_ASSIGN_OR_RETURN(const std::string installed, InstalledEtcdVersion(run.host()));
  KEELSON_ASSIGN_OR_RETURN(const Version version, ParseVersion(installed));
  const std::string own = PeerUrl(*plane);
  std::string wrong;
  const auto done = Await(
      "the etcd cluster to be healthy", run.config().timeouts.etcd_api_call,
      [&]() -> Result<bool> {
        const Result<EtcdView> view = LookAtEtcd(access);
        wrong = view ? "" : view.error().message();
        if (!view) return Passes(view.error()) ? Result<bool>(false) : view.error();
        for (const SeenMember& member : view->members) {
          const auto& urls = member.info.peer_urls;
          if (member.healthy() || std::find(urls.begin(), urls.end(), own) != urls.end()) continue;
          wrong = "member " + member.info.name + ": " + (member.error.empty() ? "no leader" : member.error);
        }
        if (!wrong.empty()) return false;
        KEELSON_RETURN_IF_ERROR(CheckVersions(*view, version));
        return true;
      },
      run.clock());
  return done || wrong.empty() ? done : Result<>(done.error().Wrap(wrong));
}

Result<> JoinEtcd(JoinRun& run) {
  if (!run.config().control_plane) return {};
  KEELSON_ASSIGN_OR_RETURN(InitRun * plane, run.ControlPlane());
  if (!plane->config().cluster.stacks_etcd()) return {};
  if (run.config().dry_run) {
    run.out() << "[dryrun] Would add the etcd member " << PeerUrl(*plane) << " and start kube-controlplane\n";
    return {};
  }
  KEELSON_RETURN_IF_ERROR(RequireInitSystem(run.host()));
  KEELSON_ASSIGN_OR_RETURN(EtcdAccess access, AccessOf(*plane));
  EtcdJoin joining(*plane, std::move(access));
  const auto done = Await(
      "the new etcd member to join the cluster", run.config().timeouts.etcd_api_call,
      [&] { return joining.Step(); }, run.clock());
  if (!done) {
    return done.error().Wrap(HowToSeeControlPlane(run.host()) +
                             (joining.last().empty() ? "" : "; " + joining.last()));
  }
  run.out() << "[etcd] The new etcd member has joined the cluster\n";
  KEELSON_ASSIGN_OR_RETURN(const std::vector<etcd::MemberInfo> members, ListMembers(joining.access()));
  return plane->Write(EtcdEndpointsObjects(ClientUrls(members)));
}

}  // namespace keelson::ctl::join
