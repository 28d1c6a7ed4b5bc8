// gRPC clients: channels, deadlines, errors. Shows no gRPC header; callers that make stubs include the
// generated headers ("lib/rpc/proto/cri.grpc.pb.h").
//
//   auto runtime = runtime::v1::RuntimeService::NewStub(rpc::UnixChannel("/run/containerd/containerd.sock"));
//   rpc::Call call(std::chrono::seconds(10), stop);
//   KEELSON_RETURN_IF_ERROR(call.Done(runtime->Version(call.context(), request, &reply), "get runtime version"));
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

// Channels connect on first use, and reconnect within 2 s when the peer comes back. They receive messages
// of any size, and try no call again.
std::shared_ptr<grpc::Channel> UnixChannel(const std::string& socket_path);
// `endpoint`: "unix:///run/x.sock", "/run/x.sock" or "host:port". No TLS: the caller makes sure that a host
// is loopback. `keepalive`: as in TlsOptions; not for sockets.
std::shared_ptr<grpc::Channel> PlainChannel(const std::string& endpoint,
                                            std::chrono::milliseconds keepalive = {});

struct TlsOptions {
  std::string ca_pem;                    // who signs servers
  std::string certificate_pem, key_pem;  // ours; both empty: none
  std::string server_name;               // to check instead of the target's host; may be empty
  // How often to ping a silent peer while calls are running; 0: never. Servers refuse pings that are too
  // frequent.
  std::chrono::milliseconds keepalive{0};
};
std::shared_ptr<grpc::Channel> TlsChannel(const std::string& host_port, const TlsOptions& options);

// The context of one call. A stop request cancels the call. A `timeout` of zero or less means no deadline
// (streams).
class Call {
 public:
  explicit Call(std::chrono::milliseconds timeout, std::stop_token stop = {});
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  grpc::ClientContext* context();
  void Cancel();
  // The outcome of the call as a Result: "what: message". kCancelled if the stop token ended the call.
  Result<> Done(const grpc::Status& status, std::string_view what) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `status` as an Error; aborts if it is OK. The gRPC code decides the code: DEADLINE_EXCEEDED kTimeout,
// UNAVAILABLE kUnavailable, FAILED_PRECONDITION and ABORTED kConflict, OUT_OF_RANGE kGone,
// RESOURCE_EXHAUSTED kTooManyRequests, ...
Error ToError(const grpc::Status& status, std::string_view what);
// `status` with the text that Go's grpc prints, for messages that users see: "rpc error: code = Unknown
// desc = message".
Error GoError(const grpc::Status& status);
// The status code's name as Go's grpc prints it: "OK", "DeadlineExceeded".
std::string CodeName(const grpc::Status& status);
// Waits until the channel is connected. False: not connected within `timeout`, or `stop` was requested.
bool AwaitConnected(grpc::Channel& channel, std::chrono::milliseconds timeout, std::stop_token stop = {});
// The time until `deadline`, at most `most`. At least one millisecond, so that Call never takes it for "no
// deadline".
std::chrono::milliseconds TimeLeft(SteadyTime deadline, std::chrono::milliseconds most);

}  // namespace keelson::rpc
