#include "kubelet/probe/socket_probe.h"

#include "kubelet/probe/http_action.h"

namespace keelson::kubelet {

namespace {

using Done = std::function<void(ProbeOutcome)>;
using Question = std::shared_ptr<const SocketProber::Question>;

Question QuestionOf(const SocketAddress& address, std::string name, std::string request = "") {
  return std::make_shared<const SocketProber::Question>(
      SocketProber::Question{address, std::move(name), std::move(request)});
}

class TcpProbe : public PreparedProbe {
 public:
  TcpProbe(SocketProber& sockets, Question question) : sockets_(sockets), question_(std::move(question)) {}

  void Make(std::chrono::seconds timeout, Done done) const override {
    sockets_.Ask(
        question_, SocketProber::After(timeout),
        [done = std::move(done)](Result<SocketProber::Answer> answer) { done(OutcomeOfDial(answer)); });
  }

 private:
  SocketProber& sockets_;
  const Question question_;
};

class HttpProbe : public PreparedProbe, public std::enable_shared_from_this<HttpProbe> {
 public:
  HttpProbe(SocketProber& sockets, ProbeUrl url, http::Headers headers)
      : sockets_(sockets), url_(std::move(url)), headers_(std::move(headers)), question_(Asking(url_)) {}

  void Make(std::chrono::seconds timeout, Done done) const override {
    auto attempt = std::make_shared<Attempt>(
        Attempt{shared_from_this(), SocketProber::After(timeout), std::move(done), std::nullopt});
    sockets_.Ask(question_, attempt->deadline,
                 [attempt](Result<SocketProber::Answer> answer) { Heard(attempt, std::move(answer)); });
  }

 private:
  // One making of it, redirect by redirect.
  struct Attempt {
    const std::shared_ptr<const HttpProbe> probe;
    const SocketProber::Time deadline;
    const Done done;
    std::optional<ProbeUrl> redirected;
    int redirects = 0;
  };

  Question Asking(const ProbeUrl& url) const {
    return QuestionOf(SocketAddress::Of(url.host, url.port), url.Authority(), RequestText(url, headers_));
  }

  static void Heard(const std::shared_ptr<Attempt>& attempt, Result<SocketProber::Answer> answer) {
    const HttpProbe& probe = *attempt->probe;
    const ProbeUrl& url = attempt->redirected ? *attempt->redirected : probe.url_;
    if (!answer) return attempt->done(FailedGet(url, answer.error()));
    auto verdict = Judge(url, attempt->redirects, answer->status, answer->location, answer->body);
    if (auto* outcome = std::get_if<ProbeOutcome>(&verdict)) return attempt->done(std::move(*outcome));
    attempt->redirected = std::get<ProbeUrl>(std::move(verdict));
    ++attempt->redirects;
    probe.sockets_.Ask(probe.Asking(*attempt->redirected), attempt->deadline,
                       [attempt](Result<SocketProber::Answer> next) { Heard(attempt, std::move(next)); });
  }

  SocketProber& sockets_;
  const ProbeUrl url_;
  const http::Headers headers_;
  const Question question_;
};

}  // namespace

ProbeOutcome OutcomeOfDial(const Result<SocketProber::Answer>& answer) {
  if (answer) return {ProbeOutcome::kSuccess, ""};
  return {ProbeOutcome::kFailure, answer.error().message()};
}

std::shared_ptr<const PreparedProbe> PrepareSocketProbe(SocketProber& sockets,
                                                        const corev1::ProbeHandler& handler,
                                                        const HandlerTarget& target) {
  if (handler.has_http_get()) {
    auto url = UrlOf(handler.http_get(), target);
    if (!url || url->tls || !SocketAddress::Of(url->host, url->port).size) return nullptr;
    return std::make_shared<const HttpProbe>(sockets, std::move(*url),
                                             HeadersOf(handler.http_get(), kProbeAgent));
  }
  if (!handler.has_tcp_socket()) return nullptr;
  ProbeUrl peer{.host = handler.tcp_socket().host().empty() ? target.pod_ip : handler.tcp_socket().host()};
  auto port = ResolvePort(handler.tcp_socket().port(), target);
  if (!port) return nullptr;
  peer.port = *port;
  const SocketAddress address = SocketAddress::Of(peer.host, peer.port);
  if (!address.size) return nullptr;
  return std::make_shared<const TcpProbe>(sockets, QuestionOf(address, peer.Authority()));
}

}  // namespace keelson::kubelet
