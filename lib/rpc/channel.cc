#include "lib/rpc/channel.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <grpcpp/grpcpp.h>

namespace keelson::rpc {
namespace {

// `connecting`: how long a connection may take at least.
grpc::ChannelArguments Arguments(std::chrono::milliseconds connecting = std::chrono::milliseconds(100)) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connecting.count()));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // Peers are on this machine or named by the administrator, so a proxy from the environment does not
  // apply.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // gRPC's own retries end the process (1.51: an assertion of its retry filter) when a server that dies ends a stream
  // without a status. Callers know better than gRPC what can be tried again.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Two clients in one process must not share a broken connection's back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

void KeepAlive(std::chrono::milliseconds period, grpc::ChannelArguments& arguments) {
  if (period.count() <= 0) return;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(period.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
}

Code CodeOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::CANCELLED:
      return Code::kCancelled;
    case grpc::StatusCode::INVALID_ARGUMENT:
      return Code::kInvalid;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Code::kTimeout;
    case grpc::StatusCode::NOT_FOUND:
      return Code::kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
      return Code::kAlreadyExists;
    case grpc::StatusCode::PERMISSION_DENIED:
      return Code::kForbidden;
    case grpc::StatusCode::UNAUTHENTICATED:
      return Code::kUnauthenticated;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Code::kTooManyRequests;
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::ABORTED:
      return Code::kConflict;
    case grpc::StatusCode::OUT_OF_RANGE:
      return Code::kGone;
    case grpc::StatusCode::UNIMPLEMENTED:
      return Code::kUnimplemented;
    case grpc::StatusCode::UNAVAILABLE:
      return Code::kUnavailable;
    default:
      return Code::kInternal;
  }
}

}  // namespace

std::shared_ptr<grpc::Channel> UnixChannel(const std::string& socket_path) {
  // A peer on a busy machine answers late.
  grpc::ChannelArguments arguments = Arguments(std::chrono::seconds(5));
  // The default authority would be the escaped path, which Go's HTTP/2 server refuses.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
}

std::shared_ptr<grpc::Channel> PlainChannel(const std::string& endpoint,
                                            std::chrono::milliseconds keepalive) {
  constexpr std::string_view kScheme = "unix://";
  if (endpoint.compare(0, kScheme.size(), kScheme) == 0) return UnixChannel(endpoint.substr(kScheme.size()));
  if (!endpoint.empty() && endpoint[0] == '/') return UnixChannel(endpoint);
  grpc::ChannelArguments arguments = Arguments();
  KeepAlive(keepalive, arguments);
  return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
}

std::shared_ptr<grpc::Channel> TlsChannel(const std::string& host_port, const TlsOptions& options) {
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = options.ca_pem;
  ssl.pem_cert_chain = options.certificate_pem;
  ssl.pem_private_key = options.key_pem;
  grpc::ChannelArguments arguments = Arguments();
  KeepAlive(options.keepalive, arguments);
  if (!options.server_name.empty()) arguments.SetSslTargetNameOverride(options.server_name);
  return grpc::CreateCustomChannel(host_port, grpc::SslCredentials(ssl), arguments);
}

struct Call::Impl {
  grpc::ClientContext context;
  std::stop_token stop;
  struct Canceller {
    grpc::ClientContext* context;
    void operator()() const { context->TryCancel(); }
  };
  std::optional<std::stop_callback<Canceller>> on_stop;
};

Call::Call(std::chrono::milliseconds timeout, std::stop_token stop) : impl_(std::make_unique<Impl>()) {
  if (timeout.count() > 0) impl_->context.set_deadline(std::chrono::system_clock::now() + timeout);
  impl_->stop = stop;
  impl_->on_stop.emplace(std::move(stop), Impl::Canceller{&impl_->context});
}

Call::~Call() = default;

grpc::ClientContext* Call::context() { return &impl_->context; }

void Call::Cancel() { impl_->context.TryCancel(); }

Result<> Call::Done(const grpc::Status& status, std::string_view what) const {
  if (status.ok()) return {};
  if (impl_->stop.stop_requested()) return Error(Code::kCancelled, std::string(what) + ": stopped");
  return ToError(status, what);
}

Error ToError(const grpc::Status& status, std::string_view what) {
  if (status.ok()) std::abort();
  return Error(CodeOf(status.error_code()), std::string(what) + ": " + status.error_message());
}

std::string CodeName(const grpc::Status& status) {
  // Indexed by status code.
  static constexpr const char* kNames[] = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  auto code = static_cast<size_t>(status.error_code());
  return code < std::size(kNames) ? kNames[code] : "Code(" + std::to_string(code) + ")";
}

Error GoError(const grpc::Status& status) {
  const Error error = ToError(status, "");
  return Error(error.code(), "rpc error: code = " + CodeName(status) + " desc = " + status.error_message());
}

bool AwaitConnected(grpc::Channel& channel, std::chrono::milliseconds timeout, std::stop_token stop) {
  // gRPC has no way to end this wait early.
  constexpr std::chrono::milliseconds kSlice{200};
  SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
  while (channel.GetState(true) != GRPC_CHANNEL_READY) {
    if (stop.stop_requested()) return false;
    bool last = std::chrono::steady_clock::now() + kSlice >= deadline;
    if (channel.WaitForConnected(std::chrono::system_clock::now() + TimeLeft(deadline, kSlice))) return true;
    if (last) return false;
  }
  return true;
}

std::chrono::milliseconds TimeLeft(SteadyTime deadline, std::chrono::milliseconds most) {
  auto now = std::chrono::steady_clock::now();
  if (deadline > now + most) return most;
  if (deadline <= now) return std::chrono::milliseconds(1);
  return std::max(std::chrono::milliseconds(1),
                  std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now));
}

}  // namespace keelson::rpc
