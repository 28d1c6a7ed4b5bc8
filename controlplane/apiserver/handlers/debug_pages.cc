#include "controlplane/apiserver/handlers/debug_pages.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/handlers/non_resource_routes.h"
#include "lib/base/file.h"
#include "lib/component/component_pages.h"
#include "lib/component/flags.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr char kComponent[] = "kube-apiserver";

void Reply(Context& context, component::PageAnswer answer) {
  ReplyText(context, answer.status, answer.content_type, std::move(answer.text));
}

}  // namespace

DebugPages::DebugPages(Options options)
    : options_(std::move(options)), flags_(FlagsByName(options_.flags)), started_(Clock::Real().Now()) {}

bool DebugPages::Handle(Context& context) const {
  const std::string& path = context.info.path;
  if (path.rfind("/debug/", 0) == 0) return HandleFlow(context) || HandleProfiling(context);
  if (!(path == "/statusz" && options_.statusz) && !(path == "/flagz" && options_.flagz)) return false;
  const std::string_view accept = context.request->headers.Get("Accept");
  Reply(context, path == "/flagz" ? component::AnswerFlagz(kComponent, flags_, accept)
                                  : component::AnswerStatusz(
                                        {kComponent, started_, Clock::Real().Now(), options_.paths}, accept));
  return true;
}

bool DebugPages::HandleFlow(Context& context) const {
  constexpr std::string_view kFolder = "/debug/api_priority_and_fairness/";
  std::string_view page = context.info.path;
  if (!options_.flow || page.substr(0, kFolder.size()) != kFolder) return false;
  page.remove_prefix(kFolder.size());
  if (page == "dump_priority_levels") {
    ReplyText(context, 200, kText, options_.flow->DumpLevels());
  } else if (page == "dump_queues") {
    ReplyText(context, 200, kText, options_.flow->DumpQueues());
  } else if (page == "dump_requests") {
    const bool details = !context.query().Get("includeRequestDetails").empty();
    ReplyText(context, 200, kText, options_.flow->DumpRequests(details));
  } else {
    return false;
  }
  return true;
}

// Only the command line of Go's profiles exists for a C++ program.
bool DebugPages::HandleProfiling(Context& context) const {
  std::string_view path = context.info.path;
  if (!options_.profiling) return false;
  if (path == "/debug/flags/v") {
    Reply(context, component::AnswerVerbosity(context.request->method, context.request->body));
  } else if (path == "/debug/pprof/cmdline") {
    std::string arguments = ReadFile("/proc/self/cmdline").value_or("");
    if (!arguments.empty()) arguments.pop_back();  // NUL-terminated arguments; here NUL separates them
    ReplyText(context, 200, kText, std::move(arguments));
  } else if (path == "/debug/pprof/" || path == "/debug/pprof") {
    ReplyText(context, 200, kText,
              "/debug/pprof/\n\ncmdline: The command line invocation of the current program\n");
  } else if (path.rfind("/debug/pprof/", 0) == 0) {
    ReplyText(context, 404, kText,
              "Unknown profile: this program is not written in Go; use perf or gdb on its process\n");
  } else {
    return false;
  }
  return true;
}

}  // namespace keelson::apiserver
