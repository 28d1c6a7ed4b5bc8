#include "controlplane/apiserver/handlers/debug_pages.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <fmt/format.h>

#include "controlplane/apiserver/handlers/misc.h"
#include "controlplane/apiserver/handlers/response.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/version.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";

// PUT of a number: how much is logged from now on.
void SetVerbosity(Context& context) {
  if (context.request->method != "PUT") return ReplyText(context, 406, kText, "unsupported http method");
  int level = 0;
  const std::string& text = context.request->body;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (problem != std::errc() || end != text.data() + text.size()) {
    return ReplyText(
        context, 400, kText,
        fmt::format("error converting {} to int: strconv.ParseInt: parsing \"{}\": invalid syntax", text,
                    text));
  }
  log::SetLevel(level >= 4 ? log::Level::kDebug : log::Level::kInfo);
  ReplyText(context, 200, kText, fmt::format("successfully set klog.logging.verbosity to {}", level));
}

std::string Head(std::string_view page) {
  return fmt::format(
      "\nkube-apiserver {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting "
      "compatibility guarantees and is for debugging purposes only.\n\n",
      page);
}

DebugPages::Options Sorted(DebugPages::Options options) {
  std::sort(options.flags.begin(), options.flags.end());
  return options;
}

}  // namespace

DebugPages::DebugPages(Options options)
    : options_(Sorted(std::move(options))), started_(Clock::Real().Now()) {}

std::string DebugPages::Status() const {
  const time_t started = std::chrono::system_clock::to_time_t(started_);
  tm parts{};
  gmtime_r(&started, &parts);
  char text[64];
  strftime(text, sizeof text, "%a %b %d %H:%M:%S UTC %Y", &parts);
  const auto up = std::chrono::duration_cast<std::chrono::seconds>(Clock::Real().Now() - started_).count();
  std::string out = Head("statusz");
  out += fmt::format("Started: {}\nUp: {} hr {:02} min {:02} sec\n", text, up / 3600, up / 60 % 60, up % 60);
  out += fmt::format("Binary version: {}\nPaths:", kGitVersion + 1);
  for (const std::string& path : options_.paths) out += " " + path;
  return out + "\n";
}

bool DebugPages::Handle(Context& context) const {
  const std::string& path = context.info.path;
  if (path.rfind("/debug/", 0) == 0) return HandleFlow(context) || HandleProfiling(context);
  if (path != "/statusz" && path != "/flagz") return false;
  std::string page;
  if (path == "/statusz") {
    page = Status();
  } else {
    page = Head("flagz");
    for (const std::string& flag : options_.flags) page += flag + "\n";
  }
  ReplyText(context, 200, kText, std::move(page));
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

// Of Go's profiles a program in C++ has the command line and no other.
bool DebugPages::HandleProfiling(Context& context) const {
  std::string_view path = context.info.path;
  if (!options_.profiling) return false;
  if (path == "/debug/flags/v") {
    SetVerbosity(context);
  } else if (path == "/debug/pprof/cmdline") {
    std::string arguments = ReadFile("/proc/self/cmdline").value_or("");
    if (!arguments.empty()) arguments.pop_back();  // each ends with a NUL; here it stands between them
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
