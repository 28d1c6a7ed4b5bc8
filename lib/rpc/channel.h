// gRPC clients: channels, deadlines, errors. Shows no gRPC header; who makes stubs includes the generated
// ones ("lib/rpc/proto/cri.grpc.pb.h").
//
//   auto runtime = runtime::v1::RuntimeService::NewStub(rpc::UnixChannel("/run/containerd/containerd.sock"));
//   rpc::Call call(std::chrono::seconds(10), stop);
//   RETURN_IF_ERROR(call.Done(runtime->Version(call.context(), request, &reply), "get runtime version"));
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace keelson::rpc {

// Channels connect on first use and again, within 2 s, when the peer comes back. Messages of any size
// are received.
std::shared_ptr<grpc::Channel> UnixChannel(const std::string& socket_path);
// "unix:///run/x.sock", "/run/x.sock" or "host:port" without TLS (loopback only; the caller's business).
std::shared_ptr<grpc::Channel> PlainChannel(const std::string& endpoint);

struct TlsOptions {
  std::string ca_pem;                    // who signs servers
  std::string certificate_pem, key_pem;  // ours; both empty: none
  std::string server_name;               // to check instead of the target's host; may be empty
  // Pings a silent peer this often while calls are under way; 0: never. Servers refuse what is too often.
  std::chrono::milliseconds keepalive{0};
};
std::shared_ptr<grpc::Channel> TlsChannel(const std::string& host_port, const TlsOptions& options);

// One call's context. A stop request cancels the call. `timeout` zero or less: no deadline (streams).
class Call {
 public:
  explicit Call(std::chrono::milliseconds timeout, std::stop_token stop = {});
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  grpc::ClientContext* context();
  void Cancel();
  // The outcome as a Result: "what: message". A call ended by the stop token is kCancelled.
  Result<> Done(const grpc::Status& status, std::string_view what) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Aborts on an OK status. The gRPC code decides ours: DEADLINE_EXCEEDED kTimeout, UNAVAILABLE kUnavailable,
// FAILED_PRECONDITION and ABORTED kConflict, OUT_OF_RANGE kGone, RESOURCE_EXHAUSTED kTooManyRequests, ...
Error ToError(const grpc::Status& status, std::string_view what);
// The same as Go's grpc prints it, for texts that reach users: "rpc error: code = Unknown desc = message".
Error GoError(const grpc::Status& status);
// Waits until the channel is connected; false when it is not within `timeout`, or soon after a stop.
bool AwaitConnected(grpc::Channel& channel, std::chrono::milliseconds timeout, std::stop_token stop = {});
// Until `deadline`, at most `most`; at least a millisecond, so that it is never taken for "no deadline".
std::chrono::milliseconds TimeLeft(SteadyTime deadline, std::chrono::milliseconds most);

}  // namespace keelson::rpc
