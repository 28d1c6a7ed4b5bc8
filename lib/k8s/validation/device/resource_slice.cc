// ResourceSlices: the devices that a driver offers.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/base/text.h"
#include "lib/k8s/validation/device/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr int kMaxDevices = 128, kMaxAdvancedDevices = 64, kMaxCounterSets = 8, kMaxCounters = 32;
constexpr int kMaxTaints = 16, kMaxConsumptions = 2, kMaxAttributes = 32, kMaxValues = 48;
constexpr size_t kValueBytes = 64;
constexpr char kTrueOrUnset[] = "must be either unset or set to true";

// 1.2.3-pre.1+build.5
bool IsSemanticVersion(std::string_view text) {
  const auto numeric = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos &&
           (part.size() == 1 || part.front() != '0');
  };
  const auto identifiers = [&](std::string_view list, bool strict) {
    for (std::string_view part : Split(list, '.')) {
      const auto allowed = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '-'; };
      if (part.empty() || !std::all_of(part.begin(), part.end(), allowed)) return false;
      const bool digits = part.find_first_not_of("0123456789") == std::string_view::npos;
      if (strict && digits && !numeric(part)) return false;
    }
    return true;
  };
  if (const size_t plus = text.find('+'); plus != std::string_view::npos) {
    if (!identifiers(text.substr(plus + 1), false)) return false;
    text = text.substr(0, plus);
  }
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    if (!identifiers(text.substr(dash + 1), true)) return false;
    text = text.substr(0, dash);
  }
  const std::vector<std::string_view> parts = Split(text, '.');
  return parts.size() == 3 && std::all_of(parts.begin(), parts.end(), numeric);
}

void CheckVersion(const std::string& value, const Path& path, FieldErrors& errors) {
  if (!IsSemanticVersion(value)) {
    errors.push_back(Invalid(path, value, "must be a string compatible with semver.org spec 2.0.0"));
  }
  if (value.size() > kValueBytes) errors.push_back(TooLong(path, kValueBytes));
}

void CheckAttribute(const resourcev1::DeviceAttribute& attribute, const Path& path, FieldErrors& errors) {
  const auto text = [&](const std::string& value, const Path& place) {
    if (value.size() > kValueBytes) errors.push_back(TooLong(place, kValueBytes));
  };
  int values = attribute.has_bool_() + attribute.has_int_() + attribute.has_string() +
               attribute.has_version() + !attribute.bools().empty() + !attribute.ints().empty() +
               !attribute.strings().empty() + !attribute.versions().empty();
  if (attribute.has_string()) text(attribute.string(), path.Child("string"));
  if (attribute.has_version()) CheckVersion(attribute.version(), path.Child("version"), errors);
  const Path strings = path.Child("strings"), versions = path.Child("versions");
  for (int i = 0; i < attribute.strings_size(); ++i) text(attribute.strings(i), strings.Index(i));
  for (int i = 0; i < attribute.versions_size(); ++i) {
    CheckVersion(attribute.versions(i), versions.Index(i), errors);
  }
  if (values == 0) errors.push_back(Invalid(path, "", "exactly one value must be specified"));
  if (values > 1) errors.push_back(InvalidInternal(path, attribute, "exactly one value must be specified"));
}

void CheckTaint(const resourcev1::DeviceTaint& taint, const Path& path, FieldErrors& errors) {
  if (taint.key().empty()) {
    errors.push_back(Required(path.Child("key")));
  } else {
    CheckLabelKey(taint.key(), path.Child("key"), errors);
  }
  AddProblems(CheckLabelValue(taint.value()), taint.value(), path.Child("value"), errors);
  CheckEnum(taint.effect(), {"NoExecute", "NoSchedule", "None"}, path.Child("effect"), errors);
}

template <typename Map, typename Check>
void CheckMap(const Map& map, const Path& path, FieldErrors& errors, bool label_keys, const Check& check) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    const Path place = path.Key(key);
    if (label_keys) {
      AddProblems(CheckDns1123Label(key), key, place, errors);
    } else {
      CheckQualifiedDeviceName(key, false, place, errors);
    }
    check(map.at(key), place);
  }
}

// Node, selector and all: at most one may be set.
struct Placement {
  std::vector<std::string> set;

  std::string Print() const {
    std::string out = "{";
    for (const std::string& one : set) out += (out.size() > 1 ? ", " : "") + one;
    return out + "}";
  }
};

void CheckDevicePlacement(const resourcev1::Device& device, bool per_device, const Path& path,
                          FieldErrors& errors) {
  if (!per_device) {
    if (device.has_node_name() || device.has_node_selector() || device.has_all_nodes()) {
      errors.push_back(Invalid(path, "null",
                               "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                               "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"));
    }
    return;
  }
  Placement placement;
  if (device.has_node_name()) {
    if (device.node_name().empty()) {
      errors.push_back(Invalid(path.Child("nodeName"), "", "must not be empty"));
    } else {
      placement.set.push_back("`nodeName`");
      AddProblems(CheckDns1123Subdomain(device.node_name()), device.node_name(), path.Child("nodeName"),
                  errors);
    }
  }
  if (device.has_node_selector()) {
    placement.set.push_back("`nodeSelector`");
    CheckNodeSelector(device.node_selector(), path.Child("nodeSelector"), errors);
  }
  if (device.all_nodes()) placement.set.push_back("`allNodes`");
  if (device.has_all_nodes() && !device.all_nodes()) {
    errors.push_back(InvalidBool(path.Child("allNodes"), false, kTrueOrUnset));
  }
  constexpr char kOne[] =
      "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is "
      "set "
      "to true in the ResourceSlice spec";
  if (placement.set.empty()) errors.push_back(Required(path, kOne));
  if (placement.set.size() > 1) errors.push_back(Invalid(path, placement.Print(), kOne));
}

bool HasLists(const resourcev1::Device& device) {
  return std::any_of(device.attributes().begin(), device.attributes().end(), [](const auto& entry) {
    const resourcev1::DeviceAttribute& one = entry.second;
    return !one.bools().empty() || !one.ints().empty() || !one.strings().empty() || !one.versions().empty();
  });
}

// Counts each value of a list.
int64_t CountValues(const resourcev1::Device& device) {
  int64_t count = 0;
  for (const auto& [name, attribute] : device.attributes()) {
    const int listed =
        attribute.bools_size() + attribute.ints_size() + attribute.strings_size() + attribute.versions_size();
    count += std::max(listed, 1);
  }
  return count;
}

template <typename T>
bool SameAs(const google::protobuf::RepeatedPtrField<T>& a, const google::protobuf::RepeatedPtrField<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& one, const T& other) { return SameMessage(one, other); });
}

bool SameCapacity(const resourcev1::Device& a, const resourcev1::Device& b) {
  return a.capacity().size() == b.capacity().size() &&
         std::all_of(a.capacity().begin(), a.capacity().end(), [&](const auto& entry) {
           const auto other = b.capacity().find(entry.first);
           return other != b.capacity().end() && SameMessage(entry.second, other->second);
         });
}

// `old`: the previous device of that name, or null. An unchanged device is not checked again.
void CheckDevice(const resourcev1::Device& device, const resourcev1::Device* old, bool per_device,
                 const Path& path, FieldErrors& errors) {
  AddProblems(CheckDns1123Label(device.name()), device.name(), path.Child("name"), errors);
  const auto total = static_cast<int64_t>(device.attributes().size() + device.capacity().size());
  if (total > kMaxAttributes) {
    errors.push_back(Invalid(
        path, total,
        fmt::format("the total number of attributes and capacities must not exceed {}", kMaxAttributes)));
  }
  if (const int64_t values = CountValues(device); values > kMaxValues) {
    errors.push_back(Invalid(
        path, values, fmt::format("the total number of attribute values must not exceed {}", kMaxValues)));
  }
  CheckMap(device.attributes(), path.Child("attributes"), errors, false,
           [&](const auto& attribute, const Path& place) { CheckAttribute(attribute, place, errors); });
  if (!old || !SameCapacity(*old, device)) {
    CheckMap(device.capacity(), path.Child("capacity"), errors, false,
             [&](const resourcev1::DeviceCapacity& capacity, const Path& place) {
               const Path policy = place.Child("requestPolicy");
               if (!capacity.has_request_policy()) return;
               if (device.allow_multiple_allocations()) {
                 CheckRequestPolicy(capacity, policy, errors);
               } else {
                 errors.push_back(Forbidden(policy, "allowMultipleAllocations must be true"));
               }
             });
  }
  if (!old || !SameAs(old->taints(), device.taints())) {
    CheckList(device.taints(), kMaxTaints, path.Child("taints"), errors,
              [&](const auto& taint, const Path& place) { CheckTaint(taint, place, errors); });
  }
  CheckUnique(
      device.consumes_counters(), kMaxConsumptions, path.Child("consumesCounters"), errors,
      [](const auto& consumption) { return consumption.counter_set(); },
      [&](const resourcev1::DeviceCounterConsumption& consumption, const Path& place) {
        CheckName(consumption.counter_set(), CheckDns1123Label, place.Child("counterSet"), errors);
        const Path counters = place.Child("counters");
        if (consumption.counters().empty()) errors.push_back(Required(counters));
        if (consumption.counters().size() > kMaxCounters) {
          errors.push_back(
              TooMany(counters, static_cast<int64_t>(consumption.counters().size()), kMaxCounters));
          return;
        }
        CheckMap(consumption.counters(), counters, errors, true, [](const auto&, const Path&) {});
      });
  CheckDevicePlacement(device, per_device, path, errors);
  CheckBindingConditions(device.binding_conditions(), device.binding_failure_conditions(), path, errors);
}

void CheckSlicePlacement(const resourcev1::ResourceSliceSpec& spec, const Path& path, FieldErrors& errors) {
  Placement placement;
  if (spec.has_node_name()) {
    if (spec.node_name().empty()) {
      errors.push_back(
          Invalid(path.Child("nodeName"), "", "must be either unset or set to a non-empty string"));
    } else {
      placement.set.push_back("`nodeName`");
      AddProblems(CheckDns1123Subdomain(spec.node_name()), spec.node_name(), path.Child("nodeName"), errors);
    }
  }
  if (spec.has_node_selector()) {
    placement.set.push_back("`nodeSelector`");
    const Path selector = path.Child("nodeSelector");
    CheckNodeSelector(spec.node_selector(), selector, errors);
    if (spec.node_selector().node_selector_terms_size() != 1) {
      errors.push_back(InvalidRaw(
          selector.Child("nodeSelectorTerms"),
          spec.node_selector().node_selector_terms().empty() ? "null" : api::EncodeJson(spec.node_selector()),
          "must have exactly one node selector term"));
    }
  }
  const auto flag = [&](bool set, bool value, const char* field) {
    if (value) placement.set.push_back(std::string("`") + field + "`");
    if (set && !value) errors.push_back(InvalidBool(path.Child(field), false, kTrueOrUnset));
  };
  flag(spec.has_all_nodes(), spec.all_nodes(), "allNodes");
  flag(spec.has_per_device_node_selection(), spec.per_device_node_selection(), "perDeviceNodeSelection");
  constexpr char kOne[] =
      "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  if (placement.set.empty()) errors.push_back(Required(path, kOne));
  if (placement.set.size() > 1) {
    errors.push_back(Invalid(path, placement.Print(), std::string(kOne) + ", but multiple fields are set"));
  }
}

void CheckSliceSpec(const resourcev1::ResourceSliceSpec& spec, const resourcev1::ResourceSliceSpec* old,
                    FieldErrors& errors) {
  const Path path("spec");
  CheckCsiDriverName(spec.driver(), path.Child("driver"), errors);
  const Path pool = path.Child("pool");
  CheckPoolName(spec.pool().name(), pool.Child("name"), errors);
  if (spec.pool().resource_slice_count() <= 0) {
    errors.push_back(Invalid(pool.Child("resourceSliceCount"), spec.pool().resource_slice_count(),
                             "must be greater than zero"));
  }
  if (spec.pool().generation() < 0) {
    errors.push_back(
        Invalid(pool.Child("generation"), spec.pool().generation(), "must be greater than or equal to zero"));
  }
  if (old) {
    CheckImmutable(spec.pool().name(), old->pool().name(), pool.Child("name"), errors);
    CheckImmutable(spec.driver(), old->driver(), path.Child("driver"), errors);
    CheckImmutable(spec.node_name(), old->node_name(), path.Child("nodeName"), errors);
  }
  CheckSlicePlacement(spec, path, errors);
  if (!spec.shared_counters().empty() && !spec.devices().empty()) {
    errors.push_back(Invalid(path, "", "only one of `sharedCounters` or `devices` is allowed"));
  }
  const bool advanced = std::any_of(spec.devices().begin(), spec.devices().end(), [](const auto& device) {
    return !device.taints().empty() || !device.consumes_counters().empty() || HasLists(device);
  });
  const auto before = [&](const std::string& name) -> const resourcev1::Device* {
    if (!old) return nullptr;
    const auto found = std::find_if(old->devices().begin(), old->devices().end(),
                                    [&](const auto& device) { return device.name() == name; });
    return found == old->devices().end() ? nullptr : &*found;
  };
  CheckUnique(
      spec.devices(), advanced ? kMaxAdvancedDevices : kMaxDevices, path.Child("devices"), errors,
      [](const auto& device) { return device.name(); },
      [&](const auto& device, const Path& place) {
        CheckDevice(device, before(device.name()), spec.per_device_node_selection(), place, errors);
      });
  CheckUnique(
      spec.shared_counters(), kMaxCounterSets, path.Child("sharedCounters"), errors,
      [](const auto& set) { return set.name(); },
      [&](const resourcev1::CounterSet& set, const Path& place) {
        CheckName(set.name(), CheckDns1123Label, place.Child("name"), errors);
        const Path counters = place.Child("counters");
        if (set.counters().empty()) errors.push_back(Required(counters));
        if (set.counters().size() > kMaxCounters) {
          errors.push_back(TooMany(counters, static_cast<int64_t>(set.counters().size()), kMaxCounters));
          return;
        }
        CheckMap(set.counters(), counters, errors, true, [](const auto&, const Path&) {});
      });
}

void CheckSlice(const resourcev1::ResourceSlice& object, FieldErrors& errors) {
  CheckSliceSpec(object.spec(), nullptr, errors);
}
void CheckSliceUpdate(const resourcev1::ResourceSlice& object, const resourcev1::ResourceSlice& old,
                      FieldErrors& errors) {
  CheckSliceSpec(object.spec(), &old.spec(), errors);
}

}  // namespace

void RegisterResourceSliceRules(RuleTable& table) {
  table.Add<resourcev1::ResourceSlice, CheckSlice>();
  table.AddUpdate<resourcev1::ResourceSlice, CheckSliceUpdate>(true);
}

}  // namespace keelson::k8s
