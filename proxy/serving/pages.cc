#include "proxy/serving/pages.h"

#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/component/component_pages.h"
#include "lib/http/server/metrics_page.h"
#include "lib/metrics/metrics.h"

namespace keelson::proxy {
namespace {

constexpr std::chrono::seconds kAgain{5};
constexpr char kComponent[] = "kube-proxy";
const std::vector<std::string> kPaths = {"/configz", "/flagz", "/healthz", "/metrics", "/proxyMode"};

void Reply(http::ResponseWriter& writer, component::PageAnswer answer) {
  writer.Reply(answer.status, {{"Content-Type", answer.content_type}, {"X-Content-Type-Options", "nosniff"}},
               std::move(answer.text));
}

Result<> Serve(std::stop_token stop, const std::string& name, const HostPort& where, bool hard_fail,
               const http::Handler& handler) {
  for (;;) {
    auto server =
        http::Server::Listen({.address = where.host, .port = where.port, .worker_threads = 1}, handler);
    if (server) return (*server)->Run(stop, std::chrono::milliseconds(100));
    if (hard_fail) return server.error();
    log::Error("Cannot serve pages; trying again", {{"server", name}, {"err", server.error()}});
    if (!Pause(Clock::Real(), kAgain, stop)) return {};
  }
}

}  // namespace

http::Handler MetricsPages(const Running& running, StatusPages status) {
  return [&running, status = std::move(status), started = Clock::Real().Now()](
             std::shared_ptr<const http::ServerRequest> request,
             std::shared_ptr<http::ResponseWriter> writer) {
    const std::string accept(request->headers.Get("Accept"));
    http::Headers text = {{"Content-Type", "text/plain; charset=utf-8"}};
    if (request->path == "/metrics") {
      http::ReplyMetrics(*request, *writer, metrics::Print());
    } else if (request->path == "/proxyMode") {
      writer->Reply(200, text, running.mode());
    } else if (request->path == "/healthz") {
      writer->Reply(200, text, "ok");
    } else if (request->path == "/configz") {
      writer->Reply(200, {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}},
                    running.configz());
    } else if (request->path == "/statusz" && status.statusz) {
      Reply(*writer, component::AnswerStatusz({kComponent, started, Clock::Real().Now(), kPaths}, accept));
    } else if (request->path == "/flagz" && status.flagz) {
      Reply(*writer, component::AnswerFlagz(kComponent, status.flags, accept));
    } else {
      writer->Reply(404, text, "404 page not found\n");
    }
  };
}

Result<> AddPages(ServiceGroup& group, const std::string& name, const std::string& address,
                  uint16_t default_port, bool hard_fail, http::Handler handler) {
  if (address.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(HostPort where, ParseHostPort(address, default_port));
  group.Add({name, {}, [=](std::stop_token stop, ServiceGroup::Ready ready) {
               ready();
               return Serve(stop, name, where, hard_fail, handler);
             }});
  return {};
}

}  // namespace keelson::proxy
