#include "controlplane/apiserver/endpoints/list_options.h"

#include <charconv>

#include <fmt/format.h>

#include "lib/base/text.h"

namespace keelson::apiserver {

bool IsSet(const http::Query& query, std::string_view name) {
  std::string_view value = query.Get(name);
  return query.Has(name) && value != "0" && !EqualsIgnoreCase(value, "false");
}

Result<std::optional<int64_t>> IntParameter(const http::Query& query, std::string_view name) {
  if (!query.Has(name)) return std::optional<int64_t>();
  std::string_view text = query.Get(name), digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  int64_t value = 0;
  auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem == std::errc::result_out_of_range && end == digits.data() + digits.size()) {
    return Error(Code::kBadRequest,
                 fmt::format("strconv.ParseInt: parsing \"{}\": value out of range", text));
  }
  if (problem != std::errc() || end != digits.data() + digits.size()) {
    return Error(Code::kBadRequest, fmt::format("strconv.ParseInt: parsing \"{}\": invalid syntax", text));
  }
  return std::optional<int64_t>(value);
}

Result<registry::ListOptions> ParseListOptions(const Context& context) {
  const http::Query& query = context.query();
  registry::ListOptions options;
  options.label_selector = query.Get("labelSelector");
  options.field_selector = query.Get("fieldSelector");
  options.allow_bookmarks = IsSet(query, "allowWatchBookmarks");
  options.resource_version = query.Get("resourceVersion");
  options.resource_version_match = query.Get("resourceVersionMatch");
  KEELSON_ASSIGN_OR_RETURN(options.timeout_seconds, IntParameter(query, "timeoutSeconds"));
  KEELSON_ASSIGN_OR_RETURN(std::optional<int64_t> limit, IntParameter(query, "limit"));
  options.limit = std::max<int64_t>(0, limit.value_or(0));
  options.continue_token = query.Get("continue");
  if (query.Has("sendInitialEvents")) options.send_initial_events = IsSet(query, "sendInitialEvents");
  // .../watch/pods/NAME selects one object, as a field selector by name does.
  options.name = context.info.name;
  options.deadline = context.deadline;
  return options;
}

}  // namespace keelson::apiserver
