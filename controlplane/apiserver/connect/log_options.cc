#include "controlplane/apiserver/connect/log_options.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "lib/api/codec/text_forms.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

using k8s::Path;

Result<std::optional<int64_t>> Number(const http::Query& query, const char* name) {
  const std::string_view text = query.Get(name);
  if (text.empty()) return std::optional<int64_t>();
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed == std::errc() && end == text.data() + text.size()) return std::optional<int64_t>(value);
  return Error(Code::kBadRequest, fmt::format("strconv.ParseInt: parsing {}: {}", k8s::Quote(text),
                                              failed == std::errc::result_out_of_range ? "value out of range"
                                                                                       : "invalid syntax"));
}

}  // namespace

Result<> CheckLogOptions(const http::Query& query, const std::string& pod) {
  KEELSON_ASSIGN_OR_RETURN(const std::optional<int64_t> lines, Number(query, "tailLines"));
  KEELSON_ASSIGN_OR_RETURN(const std::optional<int64_t> bytes, Number(query, "limitBytes"));
  KEELSON_ASSIGN_OR_RETURN(const std::optional<int64_t> seconds, Number(query, "sinceSeconds"));
  const std::string_view time = query.Get("sinceTime"), stream = query.Get("stream");
  if (!time.empty() && !api::ParseTime(time, false)) {
    return Error(Code::kBadRequest,
                 fmt::format("parsing time {} as \"2006-01-02T15:04:05Z07:00\"", k8s::Quote(time)));
  }
  k8s::FieldErrors errors;
  if (lines && *lines < 0) {
    errors.push_back(k8s::Invalid(Path("tailLines"), *lines, "must be greater than or equal to 0"));
  }
  if (bytes && *bytes < 1) {
    errors.push_back(k8s::Invalid(Path("limitBytes"), *bytes, "must be greater than 0"));
  }
  if (seconds && !time.empty()) {
    errors.push_back(
        k8s::Forbidden(Path(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"));
  } else if (seconds && *seconds < 1) {
    errors.push_back(k8s::Invalid(Path("sinceSeconds"), *seconds, "must be greater than 0"));
  }
  const bool known = stream.empty() || stream == "All" || stream == "Stdout" || stream == "Stderr";
  if (!known) errors.push_back(k8s::NotSupported(Path("stream"), stream, {"All", "Stderr", "Stdout"}));
  if (lines && !stream.empty() && stream != "All") {
    errors.push_back(
        k8s::Forbidden(Path(""), "`tailLines` and specific `stream` are mutually exclusive for now"));
  }
  if (errors.empty()) return {};
  return k8s::ToInvalid({"", "v1", "PodLogOptions"}, pod, errors);
}

}  // namespace keelson::apiserver
