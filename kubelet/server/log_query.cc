#include "kubelet/server/log_query.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>

#include "lib/api/codec/text_forms.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/field_error.h"

namespace keelson::kubelet::server {

namespace {

using k8s::Path;

constexpr int64_t kMostLines = 100000;
constexpr size_t kMostServices = 4, kLongestService = 256;

std::string Joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ",") + k8s::Quote(text);
  return "[" + out + "]";
}

Result<> Refuse(Code code, const k8s::FieldErrors& errors) {
  if (errors.empty()) return {};
  std::string text;
  for (const k8s::FieldError& error : errors) text += (text.empty() ? "" : ", ") + error.ToString();
  return Error(code, errors.size() > 1 ? "[" + text + "]" : text);
}

std::optional<WallTime> TimeOf(const http::Query& query, const char* name, k8s::FieldErrors& errors) {
  const std::string_view text = query.Get(name);
  if (text.empty()) return std::nullopt;
  auto time = api::ParseTime(text, false);
  if (time) return WallTimeOf(time->seconds);
  errors.push_back(k8s::Invalid(Path(name), text, "invalid time format"));
  return std::nullopt;
}

std::optional<int64_t> NumberOf(const http::Query& query, const char* name, k8s::FieldErrors& errors) {
  const std::string_view text = query.Get(name);
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed == std::errc() && end == text.data() + text.size()) return value;
  errors.push_back(k8s::Invalid(
      Path(name), text,
      "strconv.Atoi: parsing " + k8s::Quote(text) +
          (failed == std::errc::result_out_of_range ? ": value out of range" : ": invalid syntax")));
  return std::nullopt;
}

void CheckService(const std::string& name, k8s::FieldErrors& errors) {
  auto safe = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '@'; };
  if (name.size() > kLongestService) {
    errors.push_back(k8s::Invalid(Path("query"), name, "length must be less than 100"));
  } else if (!std::all_of(name.begin(), name.end(), safe)) {
    errors.push_back(k8s::Invalid(Path("query"), name, "input contains unsupported characters"));
  }
}

std::string JournalTime(WallTime time) {
  const time_t seconds = std::chrono::system_clock::to_time_t(time);
  tm parts = {};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const size_t size = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return std::string(text, size);
}

}  // namespace

Result<std::optional<LogQuery>> ParseLogQuery(const http::Query& query) {
  LogQuery out;
  k8s::FieldErrors errors;
  std::vector<std::string> asked;
  for (std::string_view text : query.All("query")) {
    asked.emplace_back(text);
    if (text.find_first_of("/\\") != std::string_view::npos) {
      out.files.emplace_back(text);
    } else if (text.find_first_not_of(" \t\r\n") != std::string_view::npos) {
      out.services.emplace_back(text);
    }
  }
  if (!asked.empty() && out.files.empty() && out.services.empty()) {
    errors.push_back(k8s::InvalidRaw(Path("query"), Joined(asked), "query cannot be empty"));
  }
  out.since = TimeOf(query, "sinceTime", errors);
  out.until = TimeOf(query, "untilTime", errors);
  out.boot = NumberOf(query, "boot", errors);
  out.tail_lines = NumberOf(query, "tailLines", errors);
  out.pattern = query.Get("pattern");
  KEELSON_RETURN_IF_ERROR(Refuse(Code::kBadRequest, errors));
  if (asked.empty() && !out.HasOptions()) return std::optional<LogQuery>();
  return std::optional<LogQuery>(std::move(out));
}

Result<> CheckLogQuery(const LogQuery& query) {
  k8s::FieldErrors errors;
  const Path path("query");
  for (const std::string& service : query.services) CheckService(service, errors);
  if (query.services.size() > kMostServices) {
    errors.push_back(k8s::TooMany(path, static_cast<int64_t>(query.services.size()), kMostServices));
  }
  if (query.files.empty() && query.services.empty()) {
    errors.push_back(k8s::Required(path, "cannot be empty with options"));
  } else if (!query.files.empty() && !query.services.empty()) {
    errors.push_back(k8s::InvalidRaw(path, Joined(query.files) + ", " + Joined(query.services),
                                     "cannot specify a file and service"));
  } else if (query.files.size() > 1) {
    errors.push_back(k8s::InvalidRaw(path, Joined(query.files), "cannot specify more than one file"));
  } else if (query.files.size() == 1 && query.HasOptions()) {
    errors.push_back(k8s::InvalidRaw(path, Joined(query.files), "cannot specify file with options"));
  }
  if (query.since && query.until && *query.since > *query.until) {
    errors.push_back(
        k8s::InvalidRaw(Path("untilTime"), JournalTime(*query.until), "must be after `sinceTime`"));
  }
  if (query.boot.value_or(0) > 0) {
    errors.push_back(k8s::Invalid(Path("boot"), *query.boot, "must be less than 1"));
  }
  if (query.tail_lines && (*query.tail_lines < 0 || *query.tail_lines > kMostLines)) {
    errors.push_back(k8s::Invalid(Path("tailLines"), *query.tail_lines,
                                  "must be between 0 and " + std::to_string(kMostLines) + ", inclusive"));
  }
  return Refuse(Code::kNotAcceptable, errors);
}

std::vector<std::string> JournalCommand(const LogQuery& query, const std::vector<std::string>& services) {
  std::vector<std::string> out = {"journalctl", "--utc", "--no-pager", "--output=short-precise"};
  if (query.since) out.push_back("--since=" + JournalTime(*query.since));
  if (query.until) out.push_back("--until=" + JournalTime(*query.until));
  if (query.tail_lines) out.push_back("--lines=" + std::to_string(*query.tail_lines));
  for (const std::string& service : services) out.push_back("--unit=" + service);
  if (!query.pattern.empty()) out.insert(out.end(), {"--grep=" + query.pattern, "--case-sensitive=false"});
  if (query.boot) out.push_back("--boot=" + std::to_string(*query.boot));
  return out;
}

}  // namespace keelson::kubelet::server
