#include "controlplane/apiserver/handlers/debug_pages.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "controlplane/apiserver/handlers/misc.h"
#include "controlplane/apiserver/handlers/response.h"

namespace keelson::apiserver {
namespace {

std::string Head(std::string_view page) {
  return fmt::format(
      "\nkube-apiserver {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting "
      "compatibility guarantees and is for debugging purposes only.\n\n",
      page);
}

std::vector<std::string> Sorted(std::vector<std::string> list) {
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

DebugPages::DebugPages(std::vector<std::string> flags, std::vector<std::string> paths)
    : flags_(Sorted(std::move(flags))), paths_(std::move(paths)), started_(Clock::Real().Now()) {}

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
  for (const std::string& path : paths_) out += " " + path;
  return out + "\n";
}

bool DebugPages::Handle(Context& context) const {
  const std::string& path = context.info.path;
  if (path != "/statusz" && path != "/flagz") return false;
  std::string page;
  if (path == "/statusz") {
    page = Status();
  } else {
    page = Head("flagz");
    for (const std::string& flag : flags_) page += flag + "\n";
  }
  ReplyText(context, 200, "text/plain; charset=utf-8", std::move(page));
  return true;
}

}  // namespace keelson::apiserver
