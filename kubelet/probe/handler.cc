#include "kubelet/probe/handler.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kubelet/probe/grpc_probe.h"
#include "lib/base/fd.h"
#include "lib/base/mutex.h"
#include "lib/http/client.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMaxOutput = 10 << 10;

std::string Bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

// A number, or the name of one of the container's ports.
Result<int32_t> Port(const intstr::IntOrString& port, const HandlerTarget& target) {
  if (!k8s::IsString(port)) return port.int_val();
  const corev1::Container* container = k8s::FindContainer(target.spec, target.container);
  if (container)
    for (const auto& item : container->ports())
      if (item.name() == port.str_val()) return item.container_port();
  char* end = nullptr;
  long number = std::strtol(port.str_val().c_str(), &end, 10);
  if (end && *end == '\0' && number > 0 && number < 65536) return static_cast<int32_t>(number);
  return Error(Code::kInvalid, "couldn't find port: " + port.str_val());
}

Result<> Connect(const std::string& host, int32_t port, milliseconds timeout) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); failed != 0)
    return Error(Code::kUnavailable, "dial tcp: lookup " + host + ": " + ::gai_strerror(failed));
  std::string name = "dial tcp " + Bracketed(host) + ":" + std::to_string(port);
  Result<> last = Error(Code::kUnavailable, name + ": no address");
  for (addrinfo* item = found; item; item = item->ai_next) {
    UniqueFd fd(::socket(item->ai_family, item->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) {
      last = ErrnoError("socket");
      continue;
    }
    int failed = ::connect(fd.get(), item->ai_addr, item->ai_addrlen) == 0 ? 0 : errno;
    if (failed == EINPROGRESS) {
      pollfd waiting = {fd.get(), POLLOUT, 0};
      socklen_t size = sizeof(failed);
      if (::poll(&waiting, 1, static_cast<int>(timeout.count())) <= 0)
        failed = ETIMEDOUT;
      else
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
    }
    if (failed == 0) {
      last = {};
      break;
    }
    last = Error(Code::kUnavailable, name + ": connect: " + std::strerror(failed), failed);
  }
  ::freeaddrinfo(found);
  return last;
}

class Runner : public HandlerRunner {
 public:
  Runner(cri::RuntimeService& runtime, Clock& clock) : runtime_(runtime), clock_(clock) {}

  ProbeOutcome Probe(const corev1::ProbeHandler& handler, const HandlerTarget& target, seconds timeout,
                     std::stop_token stop) override {
    if (handler.has_exec()) return Exec(handler.exec(), target, timeout, stop);
    if (handler.has_http_get()) return Http(handler.http_get(), target, timeout, stop, "kube-probe/1.36");
    if (handler.has_tcp_socket()) return Tcp(handler.tcp_socket(), target, timeout);
    if (handler.has_grpc())
      return CheckGrpcHealth(Bracketed(target.pod_ip) + ":" + std::to_string(handler.grpc().port()),
                             handler.grpc().service(), timeout, stop);
    return {ProbeOutcome::kUnknown, "missing probe handler"};
  }

  Result<> Run(const corev1::LifecycleHandler& handler, const HandlerTarget& target, seconds timeout,
               std::stop_token stop) override {
    ProbeOutcome outcome;
    if (handler.has_sleep()) return Sleep(seconds(handler.sleep().seconds()), stop);
    if (handler.has_exec())
      outcome = Exec(handler.exec(), target, timeout, stop);
    else if (handler.has_http_get())
      outcome = Http(handler.http_get(), target, timeout, stop, "kube-lifecycle/1.36");
    else if (handler.has_tcp_socket())
      outcome = Tcp(handler.tcp_socket(), target, timeout);
    else
      return Error(Code::kInvalid, "invalid handler");
    if (outcome.kind == ProbeOutcome::kSuccess) return {};
    return Error(Code::kInternal, outcome.output);
  }

 private:
  ProbeOutcome Exec(const corev1::ExecAction& action, const HandlerTarget& target, seconds timeout,
                    std::stop_token stop) {
    std::vector<std::string> command(action.command().begin(), action.command().end());
    auto result = runtime_.ExecSync(target.container_id, command, timeout, stop);
    if (!result) {
      if (result.error().Is(Code::kTimeout))
        return {ProbeOutcome::kFailure, "command timed out: \"" + (command.empty() ? "" : command[0]) +
                                            "\" timed out after " + std::to_string(timeout.count()) + "s"};
      return {ProbeOutcome::kUnknown, result.error().message()};
    }
    if (result->output.size() > kMaxOutput) result->output.resize(kMaxOutput);
    if (result->exit_code == 0) return {ProbeOutcome::kSuccess, result->output};
    return {ProbeOutcome::kFailure, result->output};
  }

  ProbeOutcome Http(const corev1::HTTPGetAction& action, const HandlerTarget& target, seconds timeout,
                    std::stop_token stop, const char* agent) {
    auto port = Port(action.port(), target);
    if (!port) return {ProbeOutcome::kUnknown, port.error().message()};
    std::string host = action.host().empty() ? target.pod_ip : action.host();
    http::ClientOptions options;
    options.base_url = std::string(action.scheme() == "HTTPS" ? "https" : "http") + "://" + Bracketed(host) +
                       ":" + std::to_string(*port);
    options.tls.insecure_skip_verify = true;  // kubelets never verify the certificates of probed pods
    options.http2 = false;
    options.connect_timeout = milliseconds(timeout);
    auto client = http::Client::Create(options);
    if (!client) return {ProbeOutcome::kUnknown, client.error().message()};
    http::ClientRequest request;
    request.target = action.path().empty() || action.path()[0] != '/' ? "/" + action.path() : action.path();
    request.headers.Set("User-Agent", agent);
    request.headers.Set("Accept", "*/*");
    request.headers.Set("Connection", "close");
    for (const auto& header : action.http_headers()) request.headers.Set(header.name(), header.value());
    auto response = (*client)->Do(request, milliseconds(timeout), stop);
    std::string url = options.base_url + request.target;
    if (!response) return {ProbeOutcome::kFailure, "Get \"" + url + "\": " + response.error().message()};
    if (response->status >= 200 && response->status < 400) return {ProbeOutcome::kSuccess, response->body};
    return {ProbeOutcome::kFailure, "HTTP probe failed with statuscode: " + std::to_string(response->status)};
  }

  ProbeOutcome Tcp(const corev1::TCPSocketAction& action, const HandlerTarget& target, seconds timeout) {
    auto port = Port(action.port(), target);
    if (!port) return {ProbeOutcome::kUnknown, port.error().message()};
    auto connected =
        Connect(action.host().empty() ? target.pod_ip : action.host(), *port, milliseconds(timeout));
    if (connected) return {ProbeOutcome::kSuccess, ""};
    return {ProbeOutcome::kFailure, connected.error().message()};
  }

  Result<> Sleep(seconds time, std::stop_token stop) {
    Mutex mutex;
    CondVar cv;
    std::stop_callback wake(stop, [&] {
      MutexLock lock(mutex);
      cv.notify_all();
    });
    SteadyTime deadline = clock_.SteadyNow() + time;
    MutexLock lock(mutex);
    while (clock_.SteadyNow() < deadline) {
      if (stop.stop_requested()) return Error(Code::kCancelled, "sleep was cut short");
      clock_.WaitUntil(mutex, cv, deadline);
    }
    return {};
  }

  cri::RuntimeService& runtime_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<HandlerRunner> NewHandlerRunner(cri::RuntimeService& runtime, Clock& clock) {
  return std::make_unique<Runner>(runtime, clock);
}

}  // namespace keelson::kubelet
