#include "kubelet/probe/handler.h"

#include <netdb.h>

#include <future>

#include "kubelet/probe/grpc_probe.h"
#include "kubelet/probe/http_action.h"
#include "kubelet/probe/socket_probe.h"
#include "lib/base/mutex.h"
#include "lib/http/client/client.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMaxOutput = 10 << 10;
constexpr char kHookAgent[] = "kube-lifecycle/1.36";
constexpr seconds kHookConnect(30);  // a hook may take its time to answer, not to be reached

bool IsPlainHttpAnswer(const Error& error) {
  return error.message().find("server gave HTTP response to HTTPS client") != std::string::npos;
}

milliseconds Left(SocketProber::Time deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, milliseconds(0));
}

class Runner : public HandlerRunner {
 public:
  Runner(cri::RuntimeService& runtime, SocketProber& sockets, Clock& clock)
      : runtime_(runtime), sockets_(sockets), clock_(clock) {}

  ProbeOutcome Probe(const corev1::ProbeHandler& handler, const HandlerTarget& target, seconds timeout,
                     std::stop_token stop) override {
    if (handler.has_exec()) return Exec(handler.exec(), target, timeout, stop);
    if (handler.has_http_get()) return Http(handler.http_get(), target, timeout, stop, Asker::kProbe);
    if (handler.has_tcp_socket()) return Tcp(handler.tcp_socket(), target, timeout);
    if (handler.has_grpc()) {
      return CheckGrpcHealth(ProbeUrl{.host = target.pod_ip, .port = handler.grpc().port()}.Authority(),
                             handler.grpc().service(), timeout, stop);
    }
    return {ProbeOutcome::kUnknown, "missing probe handler"};
  }

  std::shared_ptr<const PreparedProbe> Prepare(const corev1::ProbeHandler& handler,
                                               const HandlerTarget& target) override {
    return PrepareSocketProbe(sockets_, handler, target);
  }

  Result<> Run(const corev1::LifecycleHandler& handler, const HandlerTarget& target, seconds timeout,
               std::stop_token stop) override {
    ProbeOutcome outcome;
    if (handler.has_sleep()) return Sleep(seconds(handler.sleep().seconds()), timeout, stop);
    if (handler.has_exec()) {
      outcome = Exec(handler.exec(), target, timeout, stop);
    } else if (handler.has_http_get()) {
      outcome = Http(handler.http_get(), target, timeout, stop, Asker::kHook);
    } else {
      return Error(Code::kInvalid, "invalid handler");
    }
    if (outcome.kind == ProbeOutcome::kSuccess || outcome.kind == ProbeOutcome::kWarning) return {};
    return Error(Code::kInternal, outcome.output);
  }

 private:
  ProbeOutcome Exec(const corev1::ExecAction& action, const HandlerTarget& target, seconds timeout,
                    std::stop_token stop) {
    std::vector<std::string> command(action.command().begin(), action.command().end());
    auto result = runtime_.ExecSync(target.container_id, command, timeout, stop);
    if (!result) {
      if (result.error().Is(Code::kTimeout)) {
        return {ProbeOutcome::kFailure, "command timed out: \"" + (command.empty() ? "" : command[0]) +
                                            "\" timed out after " + std::to_string(timeout.count()) + "s"};
      }
      return {ProbeOutcome::kUnknown, result.error().message()};
    }
    if (result->output.size() > kMaxOutput) result->output.resize(kMaxOutput);
    if (result->exit_code == 0) return {ProbeOutcome::kSuccess, result->output};
    return {ProbeOutcome::kFailure, result->output};
  }

  enum class Asker { kProbe, kHook };
  ProbeOutcome Http(const corev1::HTTPGetAction& action, const HandlerTarget& target, seconds timeout,
                    std::stop_token stop, Asker asker) {
    auto first = UrlOf(action, target);
    if (!first) return {ProbeOutcome::kUnknown, first.error().message()};
    http::ClientOptions options;
    options.tls.insecure_skip_verify = true;  // kubelets never verify the certificates of probed pods
    options.http2 = false;
    options.connect_timeout = timeout.count() > 0 ? timeout : kHookConnect;
    http::ClientRequest request;
    request.headers = HeadersOf(action, asker == Asker::kHook ? kHookAgent : kProbeAgent);
    ProbeUrl url = *first;
    const auto deadline = SocketProber::After(timeout);
    std::optional<ProbeOutcome> refused;  // what https has come to
    for (int redirects = 0;; ++redirects) {
      options.base_url = url.Base();
      request.target = url.target;
      auto client = http::Client::Create(options);
      if (!client) return {ProbeOutcome::kUnknown, client.error().message()};
      auto response = (*client)->Do(request, Left(deadline), stop);
      if (!response && refused) return *refused;
      if (!response && asker == Asker::kHook && url.tls && IsPlainHttpAnswer(response.error())) {
        // Kubelets of old asked in plain http whatever the scheme said, and hooks were written for that. What
        // proves who asks is not shown to all that listen.
        refused = FailedGet(url, response.error());
        url.tls = false;
        request.headers.Remove("Authorization");
        continue;
      }
      if (!response) return FailedGet(url, response.error());
      if (refused) {
        NoteHttpFallback(url, target);
        return {ProbeOutcome::kSuccess, ""};
      }
      // A hook has been run when it has been answered, whatever the answer.
      if (asker == Asker::kHook && response->status / 100 != 3) return {ProbeOutcome::kSuccess, ""};
      auto verdict = Judge(url, redirects, response->status, std::string(response->headers.Get("Location")),
                           response->body.substr(0, kMaxOutput));
      if (auto* outcome = std::get_if<ProbeOutcome>(&verdict)) return std::move(*outcome);
      url = std::get<ProbeUrl>(verdict);
    }
  }

  static void NoteHttpFallback(const ProbeUrl& url, const HandlerTarget& target) {
    static metrics::Family& fallbacks =
        metrics::Counter("kubelet_lifecycle_handler_http_fallbacks_total",
                         "The number of times lifecycle handlers successfully fell back to http from https.");
    fallbacks.With().Increment();
    if (target.on_http_fallback) target.on_http_fallback(url.Authority());
  }

  ProbeOutcome Tcp(const corev1::TCPSocketAction& action, const HandlerTarget& target, seconds timeout) {
    auto port = ResolvePort(action.port(), target);
    if (!port) return {ProbeOutcome::kUnknown, port.error().message()};
    return Dial(action.host().empty() ? target.pod_ip : action.host(), *port, SocketProber::After(timeout));
  }

  // All addresses of the name in their order, until one answers.
  ProbeOutcome Dial(const std::string& host, int32_t port, SocketProber::Time deadline) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); failed != 0) {
      return {ProbeOutcome::kFailure, "dial tcp: lookup " + host + ": " + ::gai_strerror(failed)};
    }
    ProbeOutcome outcome{ProbeOutcome::kFailure, "dial tcp: lookup " + host + ": no such host"};
    for (addrinfo* item = found; item && outcome.kind != ProbeOutcome::kSuccess; item = item->ai_next) {
      std::promise<ProbeOutcome> dialed;
      sockets_.Ask(std::make_shared<const SocketProber::Question>(
                       SocketProber::Question{SocketAddress::Of(*item->ai_addr, item->ai_addrlen),
                                              ProbeUrl{.host = host, .port = port}.Authority(), ""}),
                   deadline,
                   [&](Result<SocketProber::Answer> answer) { dialed.set_value(OutcomeOfDial(answer)); });
      outcome = dialed.get_future().get();
    }
    ::freeaddrinfo(found);
    return outcome;
  }

  // For as long as there is time for it: a pod that has to go sooner than its hook is done goes.
  Result<> Sleep(seconds wanted, seconds timeout, std::stop_token stop) {
    static metrics::Family& cut_short =
        metrics::Counter("kubelet_sleep_action_terminated_early_total",
                         "The number of times lifecycle sleep handler got terminated before it finishes");
    const seconds time = timeout.count() > 0 ? std::min(wanted, timeout) : wanted;
    if (time < wanted) cut_short.With().Increment();
    Mutex mutex;
    CondVar cv;
    std::stop_callback wake(stop, [&] {
      MutexLock lock(mutex);
      cv.notify_all();
    });
    SteadyTime deadline = clock_.SteadyNow() + time;
    MutexLock lock(mutex);
    while (clock_.SteadyNow() < deadline) {
      if (stop.stop_requested()) {
        if (time == wanted) cut_short.With().Increment();
        return Error(Code::kCancelled, "sleep was cut short");
      }
      clock_.WaitUntil(mutex, cv, deadline);
    }
    return {};
  }

  cri::RuntimeService& runtime_;
  SocketProber& sockets_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<HandlerRunner> NewHandlerRunner(cri::RuntimeService& runtime, SocketProber& sockets,
                                                Clock& clock) {
  return std::make_unique<Runner>(runtime, sockets, clock);
}

}  // namespace keelson::kubelet
