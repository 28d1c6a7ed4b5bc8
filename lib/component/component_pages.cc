#include "lib/component/component_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <ctime>

#include "lib/api/meta.h"
#include "lib/base/media_type.h"
#include "lib/base/version.h"
#include "lib/component/logging_options.h"

namespace keelson::component {

namespace json = boost::json;

namespace {

constexpr char kText[] = "text/plain; charset=utf-8", kJson[] = "application/json";
constexpr std::string_view kGroup = "config.k8s.io";

struct Form {
  bool acceptable = true;
  std::string version;  // of the object; empty: text
};

Form FormOf(std::string_view accept, std::string_view kind) {
  if (accept.find_first_not_of(" \t") == std::string_view::npos) return {};
  for (const MediaType& clause : ParseAccept(accept)) {
    if (clause.quality <= 0) continue;
    const std::string_view as = clause.Parameter("as"), version = clause.Parameter("v");
    if (as.empty() && Covers(clause, "text/plain")) return {};
    if (as == kind && clause.Parameter("g") == kGroup && (version == "v1beta1" || version == "v1alpha1") &&
        Covers(clause, kJson)) {
      return {true, std::string(version)};
    }
  }
  return {false, ""};
}

PageAnswer NotAcceptable() {
  const char* message = "only the following media types are accepted: application/json, text/plain";
  return {406, kJson,
          json::serialize(json::object{{"kind", "Status"},
                                       {"apiVersion", "v1"},
                                       {"metadata", json::object()},
                                       {"status", "Failure"},
                                       {"message", message},
                                       {"reason", "NotAcceptable"},
                                       {"code", 406}}) +
              "\n"};
}

json::object Object(const char* kind, const Form& form, const std::string& component) {
  return {{"kind", kind},
          {"apiVersion", fmt::format("{}/{}", kGroup, form.version)},
          {"metadata", {{"name", component}}}};
}

std::string Head(const std::string& component, const char* page) {
  return fmt::format(
      "\n{} {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting "
      "compatibility guarantees and is for debugging purposes only.\n\n",
      component, page);
}

std::string UnixDate(WallTime time) {
  const time_t seconds = std::chrono::system_clock::to_time_t(time);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  strftime(text, sizeof text, "%a %b %e %H:%M:%S UTC %Y", &parts);
  return text;
}

}  // namespace

PageAnswer AnswerStatusz(const StatusPage& page, std::string_view accept) {
  const Form form = FormOf(accept, "Statusz");
  if (!form.acceptable) return NotAcceptable();
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(page.now - page.started).count();
  const int64_t up = std::max<int64_t>(0, since);
  const char* version = kGitVersion + 1;
  if (!form.version.empty()) {
    json::object out = Object("Statusz", form, page.component);
    out["startTime"] = api::FormatTime(api::ToTime(page.started));
    out["uptimeSeconds"] = up;
    out["goVersion"] = "";  // not optional, and there is none
    out["binaryVersion"] = version;
    out["emulationVersion"] = fmt::format("{}.{}", kMajor, kMinor);
    out["paths"] = json::array(page.paths.begin(), page.paths.end());
    return {200, kJson, json::serialize(out) + "\n"};
  }
  std::string text = Head(page.component, "statusz");
  text += fmt::format("Started: {}\nUp: {} hr {:02} min {:02} sec\n", UnixDate(page.started), up / 3600,
                      up / 60 % 60, up % 60);
  text += fmt::format("Binary version: {}\nEmulation version: {}.{}\nPaths:", version, kMajor, kMinor);
  for (const std::string& path : page.paths) text += " " + path;
  return {200, kText, text + "\n"};
}

PageAnswer AnswerFlagz(const std::string& component, const std::map<std::string, std::string>& flags,
                       std::string_view accept) {
  const Form form = FormOf(accept, "Flagz");
  if (!form.acceptable) return NotAcceptable();
  if (!form.version.empty()) {
    json::object out = Object("Flagz", form, component), values;
    for (const auto& [name, value] : flags) values[name] = value;
    out["flags"] = std::move(values);
    return {200, kJson, json::serialize(out) + "\n"};
  }
  std::string text = Head(component, "flagz");
  for (const auto& [name, value] : flags) text += fmt::format("{}={}\n", name, value);
  return {200, kText, std::move(text)};
}

PageAnswer AnswerVerbosity(std::string_view method, const std::string& body) {
  if (method != "PUT") return {406, kText, "unsupported http method"};
  int level = 0;
  const auto [end, problem] = std::from_chars(body.data(), body.data() + body.size(), level);
  if (problem != std::errc() || end != body.data() + body.size()) {
    return {400, kText,
            fmt::format("error converting {} to int: strconv.ParseInt: parsing \"{}\": invalid syntax", body,
                        body)};
  }
  ApplyVerbosity(level);
  return {200, kText, fmt::format("successfully set klog.logging.verbosity to {}", level)};
}

}  // namespace keelson::component
