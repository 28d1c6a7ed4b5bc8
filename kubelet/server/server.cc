#include "kubelet/server/server.h"

#include <algorithm>
#include <chrono>

#include "kubelet/server/auth.h"
#include "kubelet/server/log_follower.h"
#include "kubelet/server/request_metrics.h"
#include "kubelet/server/system_logs.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/percent.h"
#include "lib/component/component_pages.h"
#include "lib/http/server/metrics_page.h"
#include "lib/http/streaming/streaming.h"

namespace keelson::kubelet::server {
namespace {

using Request = std::shared_ptr<const http::ServerRequest>;
using Writer = std::shared_ptr<http::ResponseWriter>;

constexpr std::chrono::seconds kRunTimeout{240};

void ReplyText(http::ResponseWriter& writer, int status, std::string text) {
  writer.Reply(status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(text));
}
void ReplyJson(http::ResponseWriter& writer, std::string json) {
  writer.Reply(200, {{"Content-Type", "application/json"}}, std::move(json));
}
void ReplyError(http::ResponseWriter& writer, const Error& error) {
  ReplyText(writer, HttpStatus(error.code()), error.message() + "\n");
}
void ReplyMetrics(const http::ServerRequest& request, http::ResponseWriter& writer,
                  Result<std::string> text) {
  if (!text) return ReplyError(writer, text.error());
  http::ReplyMetrics(request, writer, std::move(*text));
}
void ReplyJsonOr(http::ResponseWriter& writer, Result<std::string> json) {
  if (!json) return ReplyError(writer, json.error());
  ReplyJson(writer, std::move(*json));
}

std::vector<std::string> Segments(std::string_view raw_path) {
  std::vector<std::string> out;
  while (!raw_path.empty()) {
    size_t slash = raw_path.find('/');
    if (slash != 0) out.push_back(PercentDecode(raw_path.substr(0, slash)));
    raw_path = slash == std::string_view::npos ? std::string_view() : raw_path.substr(slash + 1);
  }
  return out;
}

// {verb}/{namespace}/{pod}[/{uid}]/{container}
std::optional<ContainerRef> ContainerOf(const std::vector<std::string>& path) {
  if (path.size() == 4) return ContainerRef{path[1], path[2], "", path[3]};
  if (path.size() == 5) return ContainerRef{path[1], path[2], path[3], path[4]};
  return std::nullopt;
}

void ReplyPage(http::ResponseWriter& writer, component::PageAnswer answer) {
  writer.Reply(answer.status, {{"Content-Type", answer.content_type}}, std::move(answer.text));
}

// Of Go's profiles a program in C++ has the command line and no other.
void ReplyProfile(http::ResponseWriter& writer, const std::vector<std::string>& path) {
  const std::string name = path.size() == 3 ? path[2] : "";
  if (path.size() == 2) {
    return ReplyText(writer, 200,
                     "/debug/pprof/\n\ncmdline: The command line invocation of the current program\n");
  }
  if (name != "cmdline") return ReplyText(writer, 404, "Unknown profile\n");
  std::string arguments = ReadFile("/proc/self/cmdline").value_or("");
  if (!arguments.empty()) arguments.pop_back();  // each ends with a NUL; here it stands between them
  ReplyText(writer, 200, std::move(arguments));
}

int64_t NowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::Real().Now().time_since_epoch()).count();
}

}  // namespace

struct KubeletServer::Impl {
  Impl(const KubeletServerOptions& given, KubeletBackend& b, client::RestClient api)
      : options(given), auth(options, std::move(api)), backend(b) {}

  void Handle(const Request& request, const Writer& writer);
  void Route(const Request& request, const Writer& writer, const std::vector<std::string>& path);
  void RouteReadOnly(const Request& request, const Writer& writer);
  bool Watch(const http::ServerRequest& request, http::ResponseWriter& writer,
             const std::vector<std::string>& path);
  bool Pages(const http::ServerRequest& request, http::ResponseWriter& writer,
             const std::vector<std::string>& path);
  void Debug(const http::ServerRequest& request, http::ResponseWriter& writer,
             const std::vector<std::string>& path);
  void Checkpoint(http::ResponseWriter& writer, const ContainerRef& container);
  void Health(const http::ServerRequest& request, http::ResponseWriter& writer,
              const std::vector<std::string>& path);
  void Logs(const http::ServerRequest& request, const Writer& writer, const ContainerRef& container);
  void Exec(const http::ServerRequest& request, const Writer& writer, const ContainerRef& container,
            bool attach);
  void PortForward(const http::ServerRequest& request, const Writer& writer, const ContainerRef& pod);
  void Run(const http::ServerRequest& request, http::ResponseWriter& writer, const ContainerRef& container);

  const KubeletServerOptions options;
  Auth auth;
  KubeletBackend& backend;
  const WallTime started = Clock::Real().Now();
  std::stop_source stop;
  LogFollower follower;
};

KubeletServer::KubeletServer(KubeletServerOptions options, KubeletBackend& backend, client::RestClient api)
    : impl_(std::make_shared<Impl>(options, backend, std::move(api))) {}

KubeletServer::~KubeletServer() {
  impl_->stop.request_stop();
  impl_->follower.Stop();
}

http::Handler KubeletServer::handler() {
  return [impl = impl_](Request request, Writer writer) { impl->Handle(request, writer); };
}

http::Handler KubeletServer::read_only_handler() {
  return [impl = impl_](Request request, Writer writer) { impl->RouteReadOnly(request, writer); };
}

void KubeletServer::Impl::Handle(const Request& request, const Writer& writer) {
  CountRequest(*request, *writer, "readwrite");
  std::vector<std::string> path = Segments(request->raw_path);
  Result<User> user = auth.Authenticate(*request);
  if (!user) return ReplyText(*writer, 401, "Unauthorized");
  Result<> allowed = auth.Authorize(*user, AccessOf(*request));
  if (!allowed) return ReplyText(*writer, HttpStatus(allowed.error().code()), allowed.error().message());
  if (PathLabel(request->path) == "other") return ReplyText(*writer, 404, "404 page not found\n");
  Route(request, writer, path);
}

void KubeletServer::Impl::Route(const Request& request, const Writer& writer,
                                const std::vector<std::string>& path) {
  const std::string& verb = path[0];
  if (verb == "debug") return Debug(*request, *writer, path);
  bool streams = verb == "exec" || verb == "attach" || verb == "portForward";
  bool writes = verb == "run" || verb == "checkpoint";
  bool is_get = request->method == "GET" || request->method == "HEAD";
  bool is_post = request->method == "POST";
  if (writes ? !is_post : !(is_get || (is_post && (streams || verb == "stats")))) {
    return writer->Reply(405,
                         {{"Allow", writes    ? "POST"
                                    : streams ? "GET, POST"
                                              : "GET"}},
                         "Method Not Allowed\n");
  }
  if (Watch(*request, *writer, path)) return;
  static constexpr std::string_view kDebugging[] = {"containerLogs", "exec", "attach",     "run",
                                                    "portForward",   "logs", "runningpods"};
  if (!options.debugging_handlers &&
      std::find(std::begin(kDebugging), std::end(kDebugging), verb) != std::end(kDebugging)) {
    return ReplyText(*writer, 405, "Debug endpoints are disabled.\n");
  }
  if (options.debugging_handlers && Pages(*request, *writer, path)) return;
  if (verb == "runningpods" && path.size() == 1) return ReplyJson(*writer, backend.RunningPodsJson());
  if (verb == "logs") {
    if (!options.system_log_handler) return ReplyText(*writer, 405, "logs endpoint is disabled.\n");
    return ServeSystemLogs(options.log_directory, *request, *writer, options.system_log_query);
  }
  if (verb == "portForward" && (path.size() == 3 || path.size() == 4)) {
    return PortForward(*request, writer, {path[1], path[2], path.size() == 4 ? path[3] : "", ""});
  }
  if (std::optional<ContainerRef> container = ContainerOf(path)) {
    if (verb == "containerLogs" && container->pod_uid.empty()) return Logs(*request, writer, *container);
    if (verb == "exec" || verb == "attach") return Exec(*request, writer, *container, verb == "attach");
    if (verb == "run") return Run(*request, *writer, *container);
    if (verb == "checkpoint" && container->pod_uid.empty()) return Checkpoint(*writer, *container);
  }
  ReplyText(*writer, 404, "404 page not found\n");
}

bool KubeletServer::Impl::Pages(const http::ServerRequest& request, http::ResponseWriter& writer,
                                const std::vector<std::string>& path) {
  if (path.size() != 1) return false;
  const std::string_view accept = request.headers.Get("Accept");
  if (path[0] == "configz") {
    ReplyJson(writer, backend.ConfigzJson());
  } else if (path[0] == "flagz" && options.flagz) {
    ReplyPage(writer, component::AnswerFlagz("kubelet", options.flags, accept));
  } else if (path[0] == "statusz" && options.statusz) {
    ReplyPage(writer, component::AnswerStatusz({"kubelet",
                                                started,
                                                Clock::Real().Now(),
                                                {"/configz", "/debug", "/flagz", "/healthz", "/metrics"}},
                                               accept));
  } else {
    return false;
  }
  return true;
}

void KubeletServer::Impl::Debug(const http::ServerRequest& request, http::ResponseWriter& writer,
                                const std::vector<std::string>& path) {
  const std::string page = path.size() > 1 ? path[1] : "";
  if (page == "pprof") {
    if (!options.debugging_handlers) return ReplyText(writer, 405, "Debug endpoints are disabled.\n");
    if (!options.profiling) return ReplyText(writer, 405, "profiling endpoint is disabled.\n");
    if (request.method == "GET" || request.method == "HEAD") return ReplyProfile(writer, path);
    return writer.Reply(405, {{"Allow", "GET"}}, "Method Not Allowed\n");
  }
  if (options.debugging_handlers && page == "flags" && path.size() == 3 && path[2] == "v") {
    if (!options.debug_flags) return ReplyText(writer, 405, "flags endpoint is disabled.\n");
    return ReplyPage(writer, component::AnswerVerbosity(request.method, request.body));
  }
  ReplyText(writer, 404, "404 page not found\n");
}

// What only looks: it is all that the read-only port has.
bool KubeletServer::Impl::Watch(const http::ServerRequest& request, http::ResponseWriter& writer,
                                const std::vector<std::string>& path) {
  const std::string& verb = path[0];
  if (verb == "healthz") {
    Health(request, writer, path);
  } else if (verb == "pods" && path.size() == 1) {
    ReplyJson(writer, backend.PodsJson());
  } else if (verb == "stats" && path.size() == 2 && path[1] == "summary") {
    ReplyJsonOr(writer, backend.StatsSummaryJson(request.query.Get("only_cpu_and_memory") == "true"));
  } else if (verb == "metrics" && path.size() == 1) {
    ReplyMetrics(request, writer, backend.Metrics());
  } else if (verb == "metrics" && path.size() == 2 && path[1] == "resource") {
    ReplyMetrics(request, writer, backend.ResourceMetrics());
  } else if (verb == "metrics" && path.size() == 2 && path[1] == "cadvisor") {
    ReplyMetrics(request, writer, backend.CadvisorMetrics());
  } else if (verb == "metrics" && path.size() == 2 && path[1] == "probes") {
    ReplyMetrics(request, writer, backend.ProbeMetrics());
  } else if (verb == "metrics" && path.size() == 2 && path[1] == "slis") {
    ReplyMetrics(request, writer, component::HealthMetrics());
  } else {
    return false;
  }
  return true;
}

void KubeletServer::Impl::RouteReadOnly(const Request& request, const Writer& writer) {
  CountRequest(*request, *writer, "readonly");
  const std::vector<std::string> path = Segments(request->raw_path);
  if (request->method != "GET" && request->method != "HEAD") {
    return writer->Reply(405, {{"Allow", "GET"}}, "Method Not Allowed\n");
  }
  if (path.empty() || !Watch(*request, *writer, path)) ReplyText(*writer, 404, "404 page not found\n");
}

void KubeletServer::Impl::Checkpoint(http::ResponseWriter& writer, const ContainerRef& container) {
  Result<std::string> archive = backend.Checkpoint(container, stop.get_token());
  if (!archive) return ReplyError(writer, archive.error());
  ReplyJson(writer, "{\"items\":[\"" + *archive + "\"]}");
}

void KubeletServer::Impl::Health(const http::ServerRequest& request, http::ResponseWriter& writer,
                                 const std::vector<std::string>& path) {
  const std::string one = path.size() > 1 ? path[1] : "";
  component::HealthAnswer answer =
      path.size() > 2
          ? component::HealthAnswer{404, "404 page not found\n"}
          : component::AnswerHealth(backend.HealthChecks(), {"healthz", one, request.query.All("exclude"),
                                                             request.query.Has("verbose")});
  ReplyText(writer, answer.status, std::move(answer.text));
}

void KubeletServer::Impl::Logs(const http::ServerRequest& request, const Writer& writer,
                               const ContainerRef& container) {
  Result<LogOptions> options = ParseLogOptions(request.query, NowNanoseconds());
  if (!options) return ReplyError(*writer, options.error());
  bool previous = options->previous;
  Result<LogSource> source = backend.ContainerLog(container, previous);
  if (!source) return ReplyError(*writer, source.error());
  if (source->path.empty() || !source->running) options->follow = false;
  auto session = std::make_unique<LogSession>(*options, source->path, writer);
  if (request.method == "HEAD") return writer->Finish();
  if (session->Pump() == LogSession::State::kDone) return;
  follower.Add(std::move(session),
               [this, container, previous, path = source->path, follow = options->follow] {
                 if (!follow || stop.stop_requested()) return false;
                 Result<LogSource> now = backend.ContainerLog(container, previous);
                 return now && now->running && now->path == path;
               });
}

void KubeletServer::Impl::Exec(const http::ServerRequest& request, const Writer& writer,
                               const ContainerRef& container, bool attach) {
  Result<http::RemoteCommandStreams> streams = http::ParseRemoteCommand(request.query);
  if (!streams) return ReplyError(*writer, streams.error());
  if (!http::IsUpgradeRequest(request)) return ReplyText(*writer, 400, "Upgrade request required\n");
  ExecRequest wanted;
  for (std::string_view word : request.query.All("command")) wanted.command.emplace_back(word);
  wanted.in = streams->in;
  wanted.out = streams->out;
  wanted.err = streams->err;
  wanted.tty = streams->tty;
  Result<std::string> url = attach ? backend.AttachUrl(container, wanted, stop.get_token())
                                   : backend.ExecUrl(container, wanted, stop.get_token());
  if (!url) return ReplyError(*writer, url.error());
  http::ServeStreaming(request, writer, http::StreamingKind::kRemoteCommand, *url);
}

void KubeletServer::Impl::PortForward(const http::ServerRequest& request, const Writer& writer,
                                      const ContainerRef& pod) {
  if (!http::IsUpgradeRequest(request)) return ReplyText(*writer, 400, "Upgrade request required\n");
  std::vector<int32_t> ports;
  for (std::string_view list : request.query.All("port")) {
    int32_t port = 0;
    for (char c : list) port = c >= '0' && c <= '9' && port < 65536 ? port * 10 + (c - '0') : 65536;
    if (port < 1 || port > 65535) {
      return ReplyText(*writer, 400, "invalid port \"" + std::string(list) + "\"\n");
    }
    ports.push_back(port);
  }
  Result<std::string> url = backend.PortForwardUrl(pod, ports, stop.get_token());
  if (!url) return ReplyError(*writer, url.error());
  http::ServeStreaming(request, writer, http::StreamingKind::kPortForward, *url);
}

void KubeletServer::Impl::Run(const http::ServerRequest& request, http::ResponseWriter& writer,
                              const ContainerRef& container) {
  std::vector<std::string> command;
  std::string words(request.query.Get("cmd"));
  for (size_t at = 0; at <= words.size();) {
    size_t space = words.find(' ', at);
    command.push_back(words.substr(at, space == std::string::npos ? space : space - at));
    if (space == std::string::npos) break;
    at = space + 1;
  }
  Result<RunResult> result = backend.Run(container, command, kRunTimeout, stop.get_token());
  if (!result) return ReplyError(writer, result.error());
  if (result->exit_code != 0) {
    return ReplyText(
        writer, 500,
        "command '" + words + "' exited with " + std::to_string(result->exit_code) + ": " + result->output);
  }
  ReplyText(writer, 200, std::move(result->output));
}

}  // namespace keelson::kubelet::server
