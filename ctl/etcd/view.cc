#include "ctl/etcd/view.h"

#include <algorithm>
#include <tuple>

namespace keelson::ctl {
namespace {

// A member that does not answer within this time counts as down.
constexpr std::chrono::seconds kPatience{3};

etcd::Access Impatient(etcd::Access credentials) {
  credentials.timeout = std::min<std::chrono::milliseconds>(credentials.timeout, kPatience);
  return credentials;
}

void Ask(SeenMember& member, const EtcdAccess& access) {
  if (member.endpoint.empty()) {
    member.error = "it has not been started";
    return;
  }
  auto status = etcd::Member(member.endpoint, Impatient(access.credentials)).Status();
  if (status) {
    member.status = *std::move(status);
  } else {
    member.error = status.error().message();
  }
}

bool Passes(const Error& error) { return error.Is(Code::kUnavailable) || error.Is(Code::kTimeout); }

}  // namespace

Result<> WithAnyMember(const EtcdAccess& access, const std::function<Result<>(etcd::Member&)>& change) {
  std::string reasons;
  for (const std::string& endpoint : access.endpoints) {
    etcd::Member member(endpoint, Impatient(access.credentials));
    Result<> done = change(member);
    if (done || !Passes(done.error())) return done;
    reasons += (reasons.empty() ? "" : "; ") + done.error().message();
  }
  return Error(Code::kUnavailable, reasons.empty() ? "there is no endpoint of etcd" : reasons);
}

Result<std::vector<etcd::MemberInfo>> ListMembers(const EtcdAccess& access) {
  std::vector<etcd::MemberInfo> out;
  KEELSON_RETURN_IF_ERROR(WithAnyMember(access, [&](etcd::Member& member) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(out, member.Members());
    return {};
  }));
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return std::tie(a.name, a.id) < std::tie(b.name, b.id); });
  return out;
}

Result<EtcdView> LookAtEtcd(const EtcdAccess& access) {
  EtcdView out;
  // A cluster without a leader tells no list of its members; what was chosen is asked all the same.
  Result<std::vector<etcd::MemberInfo>> members = ListMembers(access);
  if (!members && !access.chosen) return members.error();
  if (access.chosen) {
    for (const std::string& endpoint : access.endpoints) {
      SeenMember& member = out.members.emplace_back();
      member.endpoint = endpoint;
      Ask(member, access);
      if (!member.status) continue;
      member.info.id = member.status->member_id;
      if (!members) continue;
      for (const etcd::MemberInfo& info : *members) {
        if (info.id == member.info.id) member.info = info;
      }
    }
  } else {
    for (const etcd::MemberInfo& info : *members) {
      SeenMember& member = out.members.emplace_back();
      member.info = info;
      const std::vector<std::string> urls = info.client_urls;
      // The socket in place of a loopback address: it was just seen to answer.
      const bool alone = members->size() == 1;
      member.endpoint = alone ? access.endpoints[0] : urls.empty() ? "" : urls[0];
      Ask(member, access);
    }
  }
  Result<> alarms = WithAnyMember(access, [&](etcd::Member& member) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(out.alarms, member.Alarms());
    return {};
  });
  // Without a quorum there is no list of alarms either; the members' own errors tell.
  if (!alarms && !Passes(alarms.error())) return alarms.error();
  return out;
}

}  // namespace keelson::ctl
