#include "kubelet/probe/handler.h"

#include <netdb.h>

#include <future>

#include "kubelet/probe/grpc_probe.h"
#include "kubelet/probe/http_action.h"
#include "kubelet/probe/socket_prober.h"
#include "lib/base/metrics.h"
#include "lib/base/mutex.h"
#include "lib/http/client.h"

namespace keelson::kubelet {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMaxOutput = 10 << 10;
constexpr char kProbeAgent[] = "kube-probe/1.36";
constexpr char kHookAgent[] = "kube-lifecycle/1.36";
constexpr seconds kHookConnect(30);  // a hook may take its time to answer, not to be reached

using Done = std::function<void(ProbeOutcome)>;

// What is asked over a socket, redirect by redirect.
struct HttpProbe {
  ProbeUrl url;
  http::Headers headers;
  SocketProber::Time deadline;
  Done done;
  int redirects = 0;
};

ProbeOutcome FailedGet(const ProbeUrl& url, const Error& error) {
  return {ProbeOutcome::kFailure, "Get \"" + url.ToString() + "\": " + error.message()};
}

bool IsPlainHttpAnswer(const Error& error) {
  return error.message().find("server gave HTTP response to HTTPS client") != std::string::npos;
}

// 0: no limit.
SocketProber::Time After(seconds timeout) {
  return timeout.count() > 0 ? std::chrono::steady_clock::now() + timeout : SocketProber::Time::max();
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
    if (handler.has_grpc())
      return CheckGrpcHealth(ProbeUrl{.host = target.pod_ip, .port = handler.grpc().port()}.Authority(),
                             handler.grpc().service(), timeout, stop);
    return {ProbeOutcome::kUnknown, "missing probe handler"};
  }

  bool Start(const corev1::ProbeHandler& handler, const HandlerTarget& target, seconds timeout,
             Done done) override {
    if (handler.has_http_get()) return StartHttp(handler.http_get(), target, timeout, std::move(done));
    if (handler.has_tcp_socket()) return StartTcp(handler.tcp_socket(), target, timeout, std::move(done));
    return false;
  }

  Result<> Run(const corev1::LifecycleHandler& handler, const HandlerTarget& target, seconds timeout,
               std::stop_token stop) override {
    ProbeOutcome outcome;
    if (handler.has_sleep()) return Sleep(seconds(handler.sleep().seconds()), timeout, stop);
    if (handler.has_exec())
      outcome = Exec(handler.exec(), target, timeout, stop);
    else if (handler.has_http_get())
      outcome = Http(handler.http_get(), target, timeout, stop, Asker::kHook);
    else
      return Error(Code::kInvalid, "invalid handler");
    if (outcome.kind == ProbeOutcome::kSuccess || outcome.kind == ProbeOutcome::kWarning) return {};
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

  bool StartHttp(const corev1::HTTPGetAction& action, const HandlerTarget& target, seconds timeout,
                 Done done) {
    auto url = UrlOf(action, target);
    if (!url || url->tls || !SocketAddress::Of(url->host, url->port).size) return false;
    Ask(std::make_shared<HttpProbe>(
        HttpProbe{std::move(*url), HeadersOf(action, kProbeAgent), After(timeout), std::move(done)}));
    return true;
  }

  void Ask(std::shared_ptr<HttpProbe> probe) {
    const ProbeUrl& url = probe->url;
    sockets_.Ask({SocketAddress::Of(url.host, url.port), url.Authority(), RequestText(url, probe->headers),
                  probe->deadline},
                 [this, probe](Result<SocketProber::Answer> answer) { Heard(probe, std::move(answer)); });
  }

  void Heard(const std::shared_ptr<HttpProbe>& probe, Result<SocketProber::Answer> answer) {
    if (!answer) return probe->done(FailedGet(probe->url, answer.error()));
    auto verdict = Judge(probe->url, probe->redirects, answer->status, answer->location, answer->body);
    if (auto* outcome = std::get_if<ProbeOutcome>(&verdict)) return probe->done(std::move(*outcome));
    probe->url = std::get<ProbeUrl>(verdict);
    ++probe->redirects;
    Ask(probe);
  }

  bool StartTcp(const corev1::TCPSocketAction& action, const HandlerTarget& target, seconds timeout,
                Done done) {
    ProbeUrl peer{.host = action.host().empty() ? target.pod_ip : action.host()};
    auto port = ResolvePort(action.port(), target);
    if (!port) return false;
    peer.port = *port;
    const SocketAddress address = SocketAddress::Of(peer.host, peer.port);
    if (!address.size) return false;
    Dial(address, peer.Authority(), After(timeout), std::move(done));
    return true;
  }

  void Dial(const SocketAddress& address, const std::string& name, SocketProber::Time deadline, Done done) {
    sockets_.Ask({address, name, "", deadline},
                 [done = std::move(done)](Result<SocketProber::Answer> answer) {
                   done(answer ? ProbeOutcome{ProbeOutcome::kSuccess, ""}
                               : ProbeOutcome{ProbeOutcome::kFailure, answer.error().message()});
                 });
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
    const auto deadline = After(timeout);
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
    std::promise<ProbeOutcome> literal;
    if (StartTcp(action, target, timeout, [&](ProbeOutcome outcome) { literal.set_value(outcome); }))
      return literal.get_future().get();
    auto port = ResolvePort(action.port(), target);
    if (!port) return {ProbeOutcome::kUnknown, port.error().message()};
    return DialName(action.host(), *port, After(timeout));
  }

  // All addresses of the name in their order, until one answers.
  ProbeOutcome DialName(const std::string& host, int32_t port, SocketProber::Time deadline) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); failed != 0)
      return {ProbeOutcome::kFailure, "dial tcp: lookup " + host + ": " + ::gai_strerror(failed)};
    ProbeOutcome outcome{ProbeOutcome::kFailure, "dial tcp: lookup " + host + ": no such host"};
    for (addrinfo* item = found; item && outcome.kind != ProbeOutcome::kSuccess; item = item->ai_next) {
      std::promise<ProbeOutcome> dialed;
      Dial(SocketAddress::Of(*item->ai_addr, item->ai_addrlen), host + ":" + std::to_string(port), deadline,
           [&](ProbeOutcome told) { dialed.set_value(std::move(told)); });
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
