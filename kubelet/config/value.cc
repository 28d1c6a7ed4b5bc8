#include "kubelet/config/value.h"

#include "lib/api/duration.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

json::value Print(bool value) { return value; }
json::value Print(int32_t value) { return value; }
json::value Print(int64_t value) { return value; }
json::value Print(double value) { return value; }
json::value Print(const std::string& value) { return json::value(value); }
json::value Print(Duration value) {
  return json::value(api::FormatGoDuration(std::chrono::nanoseconds(value).count()));
}
json::value Print(const ShutdownPeriod& value) {
  return json::object{{"priority", value.priority}, {"shutdownGracePeriodSeconds", value.seconds}};
}
json::value Print(const NodeTaint& value) {
  json::object out = {{"key", value.key}, {"effect", value.effect}};
  if (!value.value.empty()) out["value"] = value.value;
  return out;
}
template <typename T>
json::value Print(const std::map<std::string, T>& value);
json::value Print(const MemoryReservation& value) {
  return json::object{{"numaNode", value.numa_node}, {"limits", Print(value.limits)}};
}
template <typename T>
json::value Print(const std::vector<T>& value) {
  json::array out;
  for (const T& item : value) out.push_back(Print(item));
  return out;
}
template <typename T>
json::value Print(const std::map<std::string, T>& value) {
  json::object out;
  for (const auto& [name, item] : value) out[name] = Print(item);
  return out;
}

// A header's values may be credentials.
json::value Print(const std::map<std::string, std::vector<std::string>>& value) {
  json::object out;
  for (const auto& item : value) out[item.first] = json::array{"<masked>"};
  return out;
}

}  // namespace

json::value PrintField(const Field& field, const KubeletConfig& config) {
  return std::visit(
      [&](auto place) -> json::value {
        using T = std::decay_t<decltype(config.*place)>;
        const T& value = config.*place;
        const bool always = std::is_same_v<T, Duration> || field.zero == Field::Zero::kValue;
        if (!always && value == T{}) return nullptr;
        return Print(value);
      },
      field.place);
}

}  // namespace keelson::kubelet
