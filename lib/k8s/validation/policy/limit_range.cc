// Limit ranges: which bounds each type may have, and that the bounds agree.
#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

// The largest value that still fits into an int64 in milli-units.
constexpr int64_t kMaxMilli = INT64_MAX / 1000;

void CheckLimitType(const std::string& type, const Path& path, FieldErrors& errors) {
  const Problems problems = CheckQualifiedName(type);
  AddProblems(problems, type, path, errors);
  if (!problems.empty() || type.find('/') != std::string::npos) return;
  if (type != "Pod" && type != "Container" && type != "PersistentVolumeClaim") {
    errors.push_back(Invalid(path, type, "must be a standard limit type or fully qualified"));
  }
}

void CheckLimitResource(const std::string& type, const std::string& name, const Path& path,
                        FieldErrors& errors) {
  CheckAnyResource(name, path, errors);
  if (type != "Pod" && type != "Container") return;
  if (name.find('/') == std::string::npos) {
    const bool standard =
        name == "cpu" || name == "memory" || name == "ephemeral-storage" || IsHugePages(name);
    if (!standard) errors.push_back(Invalid(path, name, "must be a standard resource for containers"));
  } else if (!IsNativeResource(name) && !IsExtendedResource(name)) {
    errors.push_back(Invalid(path, name, "doesn't follow extended resource name standard"));
  }
}

const Quantity* Find(const QuantityMap& map, const std::string& name) {
  const auto it = map.find(name);
  return it == map.end() ? nullptr : &it->second;
}

// The bounds of one resource that are given.
struct Bounds {
  const std::string& name;
  const Quantity *min, *max, *limit, *request, *ratio;
  const Path& path;
  FieldErrors& errors;

  // Reports field[name] when `low` is above `high`; `format` prints both.
  void Order(const Quantity* low, const Quantity* high, const char* field, const Quantity* shown,
             std::string_view what, std::string_view than) const {
    if (!low || !high) return;
    const api::Amount a = api::Amount::Of(*low), b = api::Amount::Of(*high);
    if (a <= b) return;
    const Path list = path.Child(field);
    errors.push_back(Invalid(
        list.Key(name), api::Amount::Of(*shown).ToString(),
        fmt::format("{} value {} is greater than {} value {}", what, a.ToString(), than, b.ToString())));
  }

  void Ratio() const {
    if (!ratio) return;
    const Path list = path.Child("maxLimitRequestRatio");
    const api::Amount most = api::Amount::Of(*ratio);
    if (most < api::Amount::FromInt(1)) {
      errors.push_back(
          Invalid(list.Key(name), most.ToString(), fmt::format("ratio {} is less than 1", most.ToString())));
    }
    if (!min || !max) return;
    const api::Amount low = api::Amount::Of(*min), high = api::Amount::Of(*max);
    double asked = static_cast<double>(most.Value());
    double from = static_cast<double>(low.Value()), to = static_cast<double>(high.Value());
    if (most.Value() < kMaxMilli && low.Value() < kMaxMilli && high.Value() < kMaxMilli) {
      asked = static_cast<double>(most.MilliValue()) / 1000;
      from = static_cast<double>(low.MilliValue());
      to = static_cast<double>(high.MilliValue());
    }
    if (asked > to / from) {
      errors.push_back(
          Invalid(list.Key(name), most.ToString(),
                  fmt::format("ratio {} is greater than max/min = {:f}", most.ToString(), to / from)));
    }
  }

  void Check() const {
    Order(min, max, "min", min, "min", "max");
    Order(min, request, "defaultRequest", request, "min", "default request");
    Order(request, max, "defaultRequest", request, "default request", "max");
    Order(request, limit, "defaultRequest", request, "default request", "default limit");
    Order(min, limit, "default", min, "min", "default");
    Order(limit, max, "default", max, "default", "max");
    Ratio();
    const bool overcommits = IsNativeResource(name) && !IsHugePages(name);
    if (overcommits || !limit || !request) return;
    const api::Amount a = api::Amount::Of(*limit), b = api::Amount::Of(*request);
    if (a == b) return;
    const Path list = path.Child("defaultRequest");
    errors.push_back(Invalid(list.Key(name), b.ToString(),
                             fmt::format("default value {} must equal to defaultRequest value {} in {}",
                                         a.ToString(), b.ToString(), name)));
  }
};

void CheckItem(const corev1::LimitRangeItem& item, const Path& path, FieldErrors& errors) {
  std::set<std::string> names;
  const auto check = [&](const QuantityMap& map, const char* field) {
    const Path list = path.Child(field);
    for (const std::string& name : SortedKeys(map)) {
      CheckLimitResource(item.type(), name, list.Key(name), errors);
      names.insert(name);
    }
  };
  check(item.max(), "max");
  check(item.min(), "min");
  const bool of_pods = item.type() == "Pod";
  constexpr char kNotForPods[] = "may not be specified when `type` is 'Pod'";
  if (of_pods) {
    if (!item.default_().empty()) errors.push_back(Forbidden(path.Child("default"), kNotForPods));
    if (!item.default_request().empty()) {
      errors.push_back(Forbidden(path.Child("defaultRequest"), kNotForPods));
    }
  } else {
    check(item.default_(), "default");
    check(item.default_request(), "defaultRequest");
  }
  if (item.type() == "PersistentVolumeClaim" && !item.min().contains("storage") &&
      !item.max().contains("storage")) {
    errors.push_back(
        Required(path.Child("limits"),
                 "either minimum or maximum storage value is required, but neither was provided"));
  }
  check(item.max_limit_request_ratio(), "maxLimitRequestRatio");
  for (const std::string& name : names) {
    Bounds{name,
           Find(item.min(), name),
           Find(item.max(), name),
           of_pods ? nullptr : Find(item.default_(), name),
           of_pods ? nullptr : Find(item.default_request(), name),
           Find(item.max_limit_request_ratio(), name),
           path,
           errors}
        .Check();
  }
}

void CheckLimitRange(const corev1::LimitRange& object, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("limits");
  std::set<std::string> seen;
  for (int i = 0; i < object.spec().limits_size(); ++i) {
    const corev1::LimitRangeItem& item = object.spec().limits(i);
    const Path place = list.Index(i);
    CheckLimitType(item.type(), place.Child("type"), errors);
    if (!seen.insert(item.type()).second) errors.push_back(Duplicate(place.Child("type"), item.type()));
    CheckItem(item, place, errors);
  }
}

}  // namespace

void RegisterLimitRangeRules(RuleTable& table) { table.Add<corev1::LimitRange, CheckLimitRange>(); }

}  // namespace keelson::k8s
