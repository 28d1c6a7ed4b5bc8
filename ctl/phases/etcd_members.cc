#include "ctl/phases/etcd_members.h"

#include "ctl/cluster/apply.h"
#include "ctl/cluster/copy_certs.h"
#include "ctl/host/paths.h"
#include "ctl/phases/node_steps.h"
#include "ctl/pki/kubeconfig.h"
#include "ctl/token/discovery.h"

namespace keelson::ctl {
namespace {

constexpr std::chrono::seconds kRemovalPatience{30}, kApiPatience{10};

}  // namespace

Result<> RemoveFromEtcd(const EtcdAccess& access, uint64_t id) {
  std::string last;
  Result<> removed = Await(
      "etcd to let the member go", kRemovalPatience,
      [&]() -> Result<bool> {
        const Result<> tried = WithAnyMember(access, [&](etcd::Member& member) { return member.Remove(id); });
        // Another try has found it gone.
        if (tried || tried.error().Is(Code::kNotFound)) return true;
        last = tried.error().message();
        return tried.error().Is(Code::kUnavailable) ? Result<bool>(false) : tried.error();
      },
      Clock::Real());
  if (removed || !removed.error().Is(Code::kTimeout)) return removed;
  return removed.error().Wrap(last);
}

Result<> PublishEtcdEndpoints(const Host& host, const EtcdAccess& access) {
  KEELSON_ASSIGN_OR_RETURN(const std::vector<etcd::MemberInfo> members, ListMembers(access));
  KEELSON_ASSIGN_OR_RETURN(const std::string text, host.Read(paths::kAdminConf));
  KEELSON_ASSIGN_OR_RETURN(const Kubeconfig kubeconfig, ParseKubeconfig(text));
  KEELSON_ASSIGN_OR_RETURN(const client::RestClient api, ClientFor(kubeconfig, kApiPatience));
  return Apply(api, EtcdEndpointsObjects(ClientUrls(members)), kApiPatience);
}

}  // namespace keelson::ctl
