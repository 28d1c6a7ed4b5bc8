// Looks at the members of an etcd cluster.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ctl/etcd/plan.h"
#include "ctl/etcd/settings.h"
#include "lib/etcd/member.h"

namespace keelson::ctl {

// What the first endpoint that answers says. kUnavailable: none does; the message has every endpoint's reason.
Result<std::vector<etcd::MemberInfo>> ListMembers(const EtcdAccess& access);

// All members and what each says of itself; with chosen endpoints only what is there. A member that does not answer is
// part of the view. An error: no endpoint answers, or one refuses the credentials.
Result<EtcdView> LookAtEtcd(const EtcdAccess& access);

// Calls `change` with members one by one until one succeeds, or fails in another way than not answering.
Result<> WithAnyMember(const EtcdAccess& access, const std::function<Result<>(etcd::Member&)>& change);

}  // namespace keelson::ctl
