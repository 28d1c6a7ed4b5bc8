#include <chrono>
#include <cmath>

#include "lib/api/codec/text_forms.h"
#include "lib/api/table/table.h"
#include "lib/k8s/schema/json_path.h"
#include "lib/k8s/schema/nodes.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;

json::value DateCell(std::string_view text, int64_t now_seconds) {
  if (text.empty()) return "<unknown>";
  const auto time = api::ParseTime(text, false);
  if (!time) return "<invalid>";
  return json::value(api::HumanDuration(std::chrono::seconds(now_seconds - time->seconds)));
}

}  // namespace

json::value PrinterCell(const JsonPath& path, std::string_view type, const json::value& object,
                        int64_t now_seconds) {
  const json::value* value = path.First(object);
  if (!value) return nullptr;
  if (type == "string") return json::value(value->is_null() ? "<no value>" : GoText(*value));
  if (type == "integer") {
    if (value->is_int64()) return *value;
    if (!value->is_double() || std::fabs(value->get_double()) >= 9.2e18) return nullptr;
    return static_cast<int64_t>(value->get_double());
  }
  if (type == "number" && value->is_number()) return value->to_number<double>();
  if (type == "boolean" && value->is_bool()) return *value;
  if (type == "date" && value->is_string()) return DateCell(View(value->get_string()), now_seconds);
  return nullptr;
}

}  // namespace keelson::k8s
