#include "kubelet/config/value.h"

#include <limits>

#include "lib/api/duration.h"
#include "lib/component/logging_options.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

std::string KindOf(const json::value& value) {
  switch (value.kind()) {
    case json::kind::object:
      return "object";
    case json::kind::array:
      return "array";
    case json::kind::string:
      return "string";
    case json::kind::bool_:
      return "bool";
    case json::kind::null:
      return "null";
    default:
      return "number";
  }
}

class Reader {
 public:
  explicit Reader(std::string path, bool nanos = false) : path_(std::move(path)), nanos_(nanos) {}

  Result<> Read(const json::value& value, bool& out) {
    if (!value.is_bool()) return Mismatch(value, "bool");
    out = value.get_bool();
    return {};
  }
  Result<> Read(const json::value& value, int32_t& out) {
    int64_t wide = 0;
    RETURN_IF_ERROR(Integer(value, "int32", std::numeric_limits<int32_t>::min(),
                            std::numeric_limits<int32_t>::max(), wide));
    out = static_cast<int32_t>(wide);
    return {};
  }
  Result<> Read(const json::value& value, int64_t& out) {
    return Integer(value, "int64", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
                   out);
  }
  Result<> Read(const json::value& value, double& out) {
    if (!value.is_number()) return Mismatch(value, "float64");
    out = value.to_number<double>();
    return {};
  }
  Result<> Read(const json::value& value, std::string& out) {
    if (!value.is_string()) return Mismatch(value, "string");
    out.assign(value.get_string().data(), value.get_string().size());
    return {};
  }
  Result<> Read(const json::value& value, Duration& out) {
    std::string text;
    if (!nanos_) RETURN_IF_ERROR(Read(value, text));
    auto nanos = nanos_ ? k8s::ParseFlushFrequency(value) : api::ParseGoDuration(text);
    if (!nanos) return nanos.error().Wrap(path_);
    out = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(*nanos));
    return {};
  }
  template <typename T>
  Result<> Read(const json::value& value, std::vector<T>& out) {
    if (!value.is_array()) return Mismatch(value, "slice");
    out.clear();
    for (const json::value& item : value.get_array()) {
      T one{};
      RETURN_IF_ERROR(Read(item, one));
      out.push_back(std::move(one));
    }
    return {};
  }
  template <typename T>
  Result<> Read(const json::value& value, std::map<std::string, T>& out) {
    if (!value.is_object()) return Mismatch(value, "map");
    out.clear();
    for (const auto& item : value.get_object()) RETURN_IF_ERROR(Read(item.value(), out[item.key()]));
    return {};
  }
  Result<> Read(const json::value& value, ShutdownPeriod& out) {
    RETURN_IF_ERROR(Member(value, "priority", out.priority));
    return Member(value, "shutdownGracePeriodSeconds", out.seconds);
  }
  Result<> Read(const json::value& value, MemoryReservation& out) {
    RETURN_IF_ERROR(Member(value, "numaNode", out.numa_node));
    json::value copy = value;
    json::value* limits = copy.get_object().if_contains("limits");
    if (limits && limits->is_object())  // quantities, which may be numbers too
      for (auto& amount : limits->get_object())
        if (amount.value().is_number()) amount.value() = json::serialize(amount.value());
    return Member(copy, "limits", out.limits);
  }
  Result<> Read(const json::value& value, NodeTaint& out) {
    RETURN_IF_ERROR(Member(value, "key", out.key));
    RETURN_IF_ERROR(Member(value, "value", out.value));
    return Member(value, "effect", out.effect);
  }

 private:
  template <typename T>
  Result<> Member(const json::value& value, const char* name, T& out) {
    if (!value.is_object()) return Mismatch(value, "struct");
    const json::value* found = value.get_object().if_contains(name);
    if (!found || found->is_null()) return {};
    return Reader(path_ + "." + name).Read(*found, out);
  }
  Result<> Integer(const json::value& value, const char* type, int64_t least, int64_t most, int64_t& out) {
    if (value.is_int64() && value.get_int64() >= least && value.get_int64() <= most) {
      out = value.get_int64();
      return {};
    }
    return Mismatch(value, type);
  }
  Error Mismatch(const json::value& value, const std::string& type) const {
    std::string what = value.is_number() ? "number " + json::serialize(value) : KindOf(value);
    return Error(Code::kBadRequest, "json: cannot unmarshal " + what +
                                        " into Go struct field KubeletConfiguration." + path_ + " of type " +
                                        type);
  }

  const std::string path_;
  const bool nanos_;
};

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

Result<> ReadField(const Field& field, const json::value& value, KubeletConfig& config) {
  if (value.is_null()) return {};
  return std::visit(
      [&](auto place) -> Result<> {
        std::decay_t<decltype(config.*place)> read{};
        RETURN_IF_ERROR(Reader(std::string(field.path), field.nanos).Read(value, read));
        if (read == decltype(read){} && field.zero == Field::Zero::kDefault) return {};
        config.*place = std::move(read);
        return {};
      },
      field.place);
}

json::value PrintField(const Field& field, const KubeletConfig& config) {
  return std::visit(
      [&](auto place) -> json::value {
        using T = std::decay_t<decltype(config.*place)>;
        const T& value = config.*place;
        const bool always = std::is_same_v<T, Duration> || field.zero == Field::Zero::kZero;
        if (!always && value == T{}) return nullptr;
        return Print(value);
      },
      field.place);
}

}  // namespace keelson::kubelet
