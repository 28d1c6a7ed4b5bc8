#include "lib/etcd/member.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "lib/rpc/channel.h"
#include "lib/rpc/proto/etcd.grpc.pb.h"

namespace keelson::etcd {
namespace {

namespace pb = etcdserverpb;
using std::chrono::milliseconds;

// Large databases take minutes.
constexpr std::chrono::hours kDefragmentPatience{1};
constexpr milliseconds kKeepalive{10000};

std::shared_ptr<grpc::Channel> Connect(const std::string& url, const Access& access) {
  constexpr std::string_view kTls = "https://", kPlain = "http://";
  if (url.starts_with(kTls)) {
    return rpc::TlsChannel(url.substr(kTls.size()),
                           {access.ca_pem, access.certificate_pem, access.key_pem, "", kKeepalive});
  }
  return rpc::PlainChannel(url.starts_with(kPlain) ? url.substr(kPlain.size()) : url, kKeepalive);
}

MemberInfo FromProto(const pb::Member& from) {
  MemberInfo out;
  out.id = from.id();
  out.name = from.name();
  out.peer_urls.assign(from.peerurls().begin(), from.peerurls().end());
  out.client_urls.assign(from.clienturls().begin(), from.clienturls().end());
  out.learner = from.islearner();
  return out;
}

}  // namespace

std::string MemberId(uint64_t id) { return fmt::format("{:x}", id); }

struct Member::Impl {
  const milliseconds timeout;
  const std::string url;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<pb::Cluster::Stub> cluster;
  const std::unique_ptr<pb::Maintenance::Stub> maintenance;

  Impl(const std::string& to, const Access& access)
      : timeout(access.timeout),
        url(to),
        channel(Connect(to, access)),
        cluster(pb::Cluster::NewStub(channel)),
        maintenance(pb::Maintenance::NewStub(channel)) {}

  // Nothing is sent unless connected: a change that finds no member is known not to have happened.
  Result<> AwaitConnected(std::stop_token stop = {}) const {
    if (rpc::AwaitConnected(*channel, timeout, std::move(stop))) return {};
    return Error(Code::kUnavailable, "etcd member " + url + " cannot be reached");
  }

  // `invoke(context)`: the call.
  template <typename Invoke>
  Result<> Do(std::string_view what, milliseconds patience, std::stop_token stop, const Invoke& invoke) {
    KEELSON_RETURN_IF_ERROR(AwaitConnected(stop));
    rpc::Call call(patience, stop);
    return call.Done(invoke(call.context()), fmt::format("etcd {} at {}", what, url));
  }
};

Member::Member(std::string url, const Access& access)
    : url_(std::move(url)), impl_(std::make_unique<Impl>(url_, access)) {}
Member::~Member() = default;
Member::Member(Member&&) noexcept = default;

Result<MemberStatus> Member::Status() {
  pb::StatusResponse reply;
  KEELSON_RETURN_IF_ERROR(impl_->Do("status", impl_->timeout, {}, [&](grpc::ClientContext* context) {
    return impl_->maintenance->Status(context, pb::StatusRequest(), &reply);
  }));
  MemberStatus out;
  out.cluster_id = reply.header().cluster_id();
  out.member_id = reply.header().member_id();
  out.leader = reply.leader();
  out.raft_term = reply.raftterm();
  out.raft_index = reply.raftindex();
  out.raft_applied_index = reply.raftappliedindex();
  out.revision = reply.header().revision();
  out.db_size = reply.dbsize();
  out.db_size_in_use = reply.dbsizeinuse();
  out.version = reply.version();
  out.learner = reply.islearner();
  out.errors.assign(reply.errors().begin(), reply.errors().end());
  return out;
}

Result<std::vector<MemberInfo>> Member::Members() {
  pb::MemberListResponse reply;
  KEELSON_RETURN_IF_ERROR(impl_->Do("member list", impl_->timeout, {}, [&](grpc::ClientContext* context) {
    return impl_->cluster->MemberList(context, pb::MemberListRequest(), &reply);
  }));
  std::vector<MemberInfo> out;
  for (const pb::Member& member : reply.members()) out.push_back(FromProto(member));
  return out;
}

Result<std::vector<Alarm>> Member::Alarms() {
  pb::AlarmRequest request;
  request.set_action(pb::AlarmRequest::GET);
  pb::AlarmResponse reply;
  KEELSON_RETURN_IF_ERROR(impl_->Do("alarm list", impl_->timeout, {}, [&](grpc::ClientContext* context) {
    return impl_->maintenance->Alarm(context, request, &reply);
  }));
  std::vector<Alarm> out;
  for (const pb::AlarmMember& alarm : reply.alarms()) {
    out.push_back({alarm.memberid(), pb::AlarmType_Name(alarm.alarm())});
  }
  return out;
}

Result<> Member::Disarm(const Alarm& alarm) {
  pb::AlarmRequest request;
  pb::AlarmType type = pb::NONE;
  if (!pb::AlarmType_Parse(alarm.kind, &type)) return Error(Code::kInvalid, "no such alarm: " + alarm.kind);
  request.set_action(pb::AlarmRequest::DEACTIVATE);
  request.set_memberid(alarm.member_id);
  request.set_alarm(type);
  pb::AlarmResponse reply;
  return impl_->Do("alarm disarm", impl_->timeout, {}, [&](grpc::ClientContext* context) {
    return impl_->maintenance->Alarm(context, request, &reply);
  });
}

Result<> Member::Defragment(std::stop_token stop) {
  pb::DefragmentResponse reply;
  return impl_->Do("defragment", kDefragmentPatience, std::move(stop), [&](grpc::ClientContext* context) {
    return impl_->maintenance->Defragment(context, pb::DefragmentRequest(), &reply);
  });
}

Result<> Member::Snapshot(const std::function<Result<>(std::string_view)>& each, std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(impl_->AwaitConnected(stop));
  rpc::Call call(milliseconds(0), stop);
  auto stream = impl_->maintenance->Snapshot(call.context(), pb::SnapshotRequest());
  pb::SnapshotResponse reply;
  Result<> taken;
  while (taken && stream->Read(&reply)) taken = each(reply.blob());
  if (!taken) call.Cancel();
  const grpc::Status status = stream->Finish();
  return taken ? call.Done(status, "etcd snapshot at " + url_) : taken;
}

Result<uint64_t> Member::AddLearner(const std::string& peer_url) {
  pb::MemberAddRequest request;
  request.add_peerurls(peer_url);
  request.set_islearner(true);
  pb::MemberAddResponse reply;
  KEELSON_RETURN_IF_ERROR(impl_->Do("member add", impl_->timeout, {}, [&](grpc::ClientContext* context) {
    return impl_->cluster->MemberAdd(context, request, &reply);
  }));
  return reply.member().id();
}

Result<> Member::Promote(uint64_t id) {
  pb::MemberPromoteRequest request;
  request.set_id(id);
  pb::MemberPromoteResponse reply;
  return impl_->Do("member promote", impl_->timeout, {}, [&](grpc::ClientContext* context) {
    return impl_->cluster->MemberPromote(context, request, &reply);
  });
}

Result<> Member::Remove(uint64_t id) {
  pb::MemberRemoveRequest request;
  request.set_id(id);
  pb::MemberRemoveResponse reply;
  return impl_->Do("member remove", impl_->timeout, {}, [&](grpc::ClientContext* context) {
    return impl_->cluster->MemberRemove(context, request, &reply);
  });
}

Result<> Member::SetPeerUrls(uint64_t id, const std::vector<std::string>& peer_urls) {
  pb::MemberUpdateRequest request;
  request.set_id(id);
  for (const std::string& url : peer_urls) request.add_peerurls(url);
  pb::MemberUpdateResponse reply;
  return impl_->Do("member update", impl_->timeout, {}, [&](grpc::ClientContext* context) {
    return impl_->cluster->MemberUpdate(context, request, &reply);
  });
}

}  // namespace keelson::etcd
