#include "controlplane/etcd/client.h"

#include <algorithm>

#include "controlplane/etcd/endpoints.h"

namespace keelson::etcd {
namespace {

namespace pb = etcdserverpb;
using std::chrono::milliseconds;

constexpr std::string_view kRegistry = "/registry";

KeyValue FromProto(mvccpb::KeyValue& from) {
  KeyValue kv;
  kv.key = std::move(*from.mutable_key());
  kv.value = std::move(*from.mutable_value());
  kv.mod_revision = from.mod_revision();
  kv.create_revision = from.create_revision();
  kv.version = from.version();
  kv.lease = from.lease();
  return kv;
}

}  // namespace

std::string PrefixEnd(std::string prefix) {
  while (!prefix.empty()) {
    auto& last = reinterpret_cast<unsigned char&>(prefix.back());
    if (last != 0xff) {
      ++last;
      return prefix;
    }
    prefix.pop_back();
  }
  return std::string(1, '\0');  // etcd's "to the end of the keyspace"
}

struct Client::Impl {
  const ClientOptions options;
  Endpoints endpoints;

  explicit Impl(ClientOptions o) : options(std::move(o)), endpoints(options) {}

  // Converts keys between etcd's prefix and the callers'. The last character of a range's end may differ.
  std::string Outward(std::string_view key) const {
    const bool ours = key.size() > kRegistry.size() && key.starts_with(kRegistry);
    return ours ? options.prefix + std::string(key.substr(kRegistry.size())) : std::string(key);
  }
  KeyValue Inward(mvccpb::KeyValue& from) const {
    KeyValue kv = FromProto(from);
    if (options.prefix == kRegistry) return kv;
    if (kv.key.starts_with(options.prefix + "/")) {
      kv.key.replace(0, options.prefix.size(), kRegistry);
    } else if (kv.key.starts_with(kRegistry)) {
      kv.key.insert(0, "/elsewhere");  // belongs to another cluster
    }
    return kv;
  }

  SteadyTime Deadline(const Limits& limits) const {
    return std::min(limits.deadline, std::chrono::steady_clock::now() + options.timeout);
  }

  // One call: `invoke(endpoint, context)`. Repeats reads while etcd is down. Nothing is sent unless connected, so that a
  // write that finds no endpoint is known not to have happened.
  template <typename Invoke>
  Result<> Do(std::string_view what, bool repeat, const Limits& limits, const Invoke& invoke) {
    SteadyTime deadline = Deadline(limits);
    while (true) {
      KEELSON_ASSIGN_OR_RETURN(Endpoint * endpoint, endpoints.Pick(deadline, limits.stop));
      Endpoint::Use use(*endpoint, rpc::TimeLeft(deadline, options.timeout), limits.stop);
      const grpc::Status status = invoke(*endpoint, use.call().context());
      Result<> done = use.Done(status, what);
      // No rate is exceeded: a repetition would fail as well.
      if (!done && done.error().Is(Code::kTooManyRequests) &&
          done.error().message().find("message larger than max") != std::string::npos) {
        return Error(Code::kInternal, done.error().message());
      }
      if (done || !(done.error().Is(Code::kUnavailable) || done.error().Is(Code::kTimeout))) return done;
      if (!use.IsOfLeader(status)) endpoints.Abandon(*endpoint);
      if (!repeat || std::chrono::steady_clock::now() >= deadline) return done;
    }
  }

  Result<TxnResult> Txn(const pb::TxnRequest& request, const Limits& limits) {
    pb::TxnResponse reply;
    KEELSON_RETURN_IF_ERROR(
        Do("etcd txn", false, limits, [&](Endpoint& endpoint, grpc::ClientContext* context) {
          return endpoint.kv->Txn(context, request, &reply);
        }));
    TxnResult result;
    result.succeeded = reply.succeeded();
    result.revision = reply.header().revision();
    if (!reply.succeeded() && reply.responses_size() > 0) {
      auto& range = *reply.mutable_responses(0)->mutable_response_range();
      if (range.kvs_size() > 0) result.current = Inward(*range.mutable_kvs(0));
    }
    return result;
  }
};

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Client::~Client() = default;

void Client::Close() { impl_->endpoints.Close(); }

Result<RangeResult> Client::Range(std::string_view key, const RangeOptions& options, const Limits& limits) {
  pb::RangeRequest request;
  request.set_key(impl_->Outward(key));
  request.set_range_end(impl_->Outward(options.end));
  request.set_limit(options.limit);
  request.set_revision(options.revision);
  request.set_keys_only(options.keys_only);
  request.set_count_only(options.count_only);
  pb::RangeResponse reply;
  KEELSON_RETURN_IF_ERROR(
      impl_->Do("etcd range", true, limits, [&](Endpoint& endpoint, grpc::ClientContext* context) {
        return endpoint.kv->Range(context, request, &reply);
      }));
  RangeResult result;
  result.revision = reply.header().revision();
  result.count = reply.count();
  result.more = reply.more();
  result.kvs.reserve(reply.kvs_size());
  for (auto& kv : *reply.mutable_kvs()) result.kvs.push_back(impl_->Inward(kv));
  return result;
}

Result<int64_t> Client::Revision(const Limits& limits) {
  RangeOptions options;
  options.count_only = true;
  KEELSON_ASSIGN_OR_RETURN(RangeResult result, Range(std::string(1, '\0'), options, limits));
  return result.revision;
}

Result<TxnResult> Client::PutIf(std::string_view key, std::string_view value, int64_t expected, int64_t lease,
                                const Limits& limits, const Guard* guard) {
  pb::TxnRequest request;
  auto require = [&](std::string_view of, int64_t mod_revision) {
    pb::Compare& compare = *request.add_compare();
    compare.set_target(pb::Compare::MOD);
    compare.set_key(impl_->Outward(of));
    compare.set_mod_revision(mod_revision);
  };
  require(key, expected);
  if (guard) require(guard->key, guard->mod_revision);
  pb::PutRequest& put = *request.add_success()->mutable_request_put();
  put.set_key(impl_->Outward(key));
  put.set_value(std::string(value));
  put.set_lease(lease);
  request.add_failure()->mutable_request_range()->set_key(impl_->Outward(key));
  return impl_->Txn(request, limits);
}

Result<TxnResult> Client::DeleteIf(std::string_view key, int64_t expected, const Limits& limits) {
  pb::TxnRequest request;
  pb::Compare& compare = *request.add_compare();
  compare.set_target(pb::Compare::MOD);
  compare.set_key(impl_->Outward(key));
  compare.set_mod_revision(expected);
  request.add_success()->mutable_request_delete_range()->set_key(impl_->Outward(key));
  request.add_failure()->mutable_request_range()->set_key(impl_->Outward(key));
  return impl_->Txn(request, limits);
}

Result<TxnResult> Client::PutIfVersion(std::string_view key, std::string_view value, int64_t version,
                                       const Limits& limits) {
  pb::TxnRequest request;
  pb::Compare& compare = *request.add_compare();
  compare.set_target(pb::Compare::VERSION);
  compare.set_key(impl_->Outward(key));
  compare.set_version(version);
  pb::PutRequest& put = *request.add_success()->mutable_request_put();
  put.set_key(impl_->Outward(key));
  put.set_value(std::string(value));
  request.add_failure()->mutable_request_range()->set_key(impl_->Outward(key));
  return impl_->Txn(request, limits);
}

Result<int64_t> Client::GrantLease(std::chrono::seconds ttl, const Limits& limits) {
  pb::LeaseGrantRequest request;
  request.set_ttl(ttl.count());
  pb::LeaseGrantResponse reply;
  KEELSON_RETURN_IF_ERROR(
      impl_->Do("etcd lease", true, limits, [&](Endpoint& endpoint, grpc::ClientContext* context) {
        return endpoint.lease->LeaseGrant(context, request, &reply);
      }));
  return reply.id();
}

Result<> Client::Compact(int64_t revision, const Limits& limits) {
  pb::CompactionRequest request;
  request.set_revision(revision);
  pb::CompactionResponse reply;
  return impl_->Do("etcd compact", false, limits, [&](Endpoint& endpoint, grpc::ClientContext* context) {
    return endpoint.kv->Compact(context, request, &reply);
  });
}

Result<ServerStatus> Client::Status(const Limits& limits) {
  pb::StatusResponse reply;
  KEELSON_RETURN_IF_ERROR(
      impl_->Do("etcd status", true, limits, [&](Endpoint& endpoint, grpc::ClientContext* context) {
        return endpoint.maintenance->Status(context, pb::StatusRequest(), &reply);
      }));
  ServerStatus status;
  status.version = reply.version();
  status.db_size = reply.dbsize();
  status.revision = reply.header().revision();
  status.has_leader = reply.leader() != 0;
  return status;
}

Result<> Client::Snapshot(const std::function<Result<>(std::string_view)>& each, std::stop_token stop) {
  Limits limits;
  limits.stop = stop;
  KEELSON_ASSIGN_OR_RETURN(Endpoint * endpoint, impl_->endpoints.Pick(impl_->Deadline(limits), stop));
  rpc::Call call(milliseconds(0), stop);
  auto stream = endpoint->maintenance->Snapshot(call.context(), pb::SnapshotRequest());
  pb::SnapshotResponse reply;
  Result<> taken;
  while (taken && stream->Read(&reply)) taken = each(reply.blob());
  if (!taken) call.Cancel();
  grpc::Status status = stream->Finish();
  return taken ? call.Done(status, "etcd snapshot") : taken;
}

Result<> Client::Defragment(const Limits& limits) {
  for (Endpoint* endpoint : impl_->endpoints.all()) {
    if (!rpc::AwaitConnected(*endpoint->channel, rpc::TimeLeft(limits.deadline, impl_->options.timeout))) {
      return Error(Code::kUnavailable, "etcd: an endpoint cannot be reached");
    }
    rpc::Call call(rpc::TimeLeft(limits.deadline, std::chrono::hours(1)), limits.stop);
    pb::DefragmentResponse reply;
    KEELSON_RETURN_IF_ERROR(
        call.Done(endpoint->maintenance->Defragment(call.context(), pb::DefragmentRequest(), &reply),
                  "etcd defragment"));
  }
  return {};
}

Error Client::Watch(std::string_view key, std::string_view end, int64_t start_revision,
                    const std::function<void()>& created, const std::function<void(WatchBatch)>& each,
                    std::stop_token stop) {
  Limits limits;
  limits.stop = stop;
  Result<Endpoint*> endpoint = impl_->endpoints.Pick(impl_->Deadline(limits), stop);
  if (!endpoint) return endpoint.error();
  Endpoint::Use use(**endpoint, milliseconds(0), stop);
  rpc::Call& call = use.call();
  // Without this, a watch on a member that has lost its leader would hang silently.
  call.context()->AddMetadata("hasleader", "true");
  auto stream = (*endpoint)->watch->Watch(call.context());
  pb::WatchRequest request;
  auto& create = *request.mutable_create_request();
  create.set_key(impl_->Outward(key));
  create.set_range_end(impl_->Outward(end));
  create.set_start_revision(start_revision);
  stream->Write(request);

  std::optional<Error> ended;
  pb::WatchResponse reply;
  while (!ended && stream->Read(&reply)) {
    if (reply.compact_revision() != 0) {
      ended = Error(Code::kGone, "etcd watch: required revision has been compacted");
    } else if (reply.canceled()) {
      ended = Error(Code::kUnavailable, "etcd watch: cancelled by the server: " + reply.cancel_reason());
    } else if (reply.created()) {
      created();
    } else if (reply.events_size() > 0) {
      WatchBatch batch;
      batch.events.reserve(reply.events_size());
      for (auto& event : *reply.mutable_events()) {
        batch.events.push_back({event.type() == mvccpb::Event::DELETE, impl_->Inward(*event.mutable_kv())});
      }
      batch.revision = batch.events.back().kv.mod_revision;
      each(std::move(batch));
    }
  }
  call.Cancel();
  grpc::Status status = stream->Finish();
  if (ended) return *ended;
  if (stop.stop_requested()) return Error(Code::kCancelled, "etcd watch: stopped");
  impl_->endpoints.Abandon(**endpoint);
  if (status.ok()) return Error(Code::kUnavailable, "etcd watch: ended by the server");
  return use.Done(status, "etcd watch").error();
}

}  // namespace keelson::etcd
