// Rules for values of many kinds.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/k8s/int_or_string.h"
#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

void AddProblems(const Problems& problems, std::string_view value, const Path& path, FieldErrors& errors) {
  for (const std::string& problem : problems) errors.push_back(Invalid(path, value, problem));
}

void CheckName(std::string_view value, NameRule rule, const Path& path, FieldErrors& errors) {
  if (value.empty()) {
    errors.push_back(Required(path));
  } else {
    AddProblems(rule(value), value, path, errors);
  }
}

void CheckNonNegative(int64_t value, const Path& path, FieldErrors& errors) {
  if (value < 0) errors.push_back(Invalid(path, value, kNotNegative));
}

void CheckRange(int64_t value, int64_t low, int64_t high, const Path& path, FieldErrors& errors) {
  if (value >= low && value <= high) return;
  errors.push_back(Invalid(path, value, fmt::format("must be between {} and {}, inclusive", low, high)));
}

void CheckEnum(std::string_view value, const std::vector<std::string_view>& supported, const Path& path,
               FieldErrors& errors) {
  if (value.empty()) {
    errors.push_back(Required(path));
  } else if (std::find(supported.begin(), supported.end(), value) == supported.end()) {
    errors.push_back(NotSupported(path, value, supported));
  }
}

void CheckLabelKey(std::string_view key, const Path& path, FieldErrors& errors) {
  AddProblems(CheckQualifiedName(key), key, path, errors);
}

void CheckLabels(const StringMap& labels, const Path& path, FieldErrors& errors) {
  for (const auto& [key, value] : labels) {
    CheckLabelKey(key, path, errors);
    AddProblems(CheckLabelValue(value), value, path, errors);
  }
}

void CheckSelectorOperator(std::string_view op, int values, const Path& item, FieldErrors& errors) {
  if (op == "In" || op == "NotIn") {
    if (values == 0) {
      errors.push_back(
          Required(item.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (values > 0) {
      errors.push_back(Forbidden(item.Child("values"),
                                 "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else {
    errors.push_back(Invalid(item.Child("operator"), op, "not a valid selector operator"));
  }
}

void CheckLabelSelector(const metav1::LabelSelector& selector, const Path& path, FieldErrors& errors) {
  CheckLabels(selector.match_labels(), path.Child("matchLabels"), errors);
  const Path list = path.Child("matchExpressions");
  for (int i = 0; i < selector.match_expressions_size(); ++i) {
    const metav1::LabelSelectorRequirement& requirement = selector.match_expressions(i);
    const Path item = list.Index(i);
    CheckSelectorOperator(requirement.operator_(), requirement.values_size(), item, errors);
    CheckLabelKey(requirement.key(), item.Child("key"), errors);
    const Path values = item.Child("values");
    for (int j = 0; j < requirement.values_size(); ++j) {
      AddProblems(CheckLabelValue(requirement.values(j)), requirement.values(j), values.Index(j), errors);
    }
  }
}

void CheckIntOrPercent(const intstr::IntOrString& value, const Path& path, FieldErrors& errors) {
  if (!IsString(value)) {
    CheckNonNegative(value.int_val(), path, errors);
    return;
  }
  const std::string& text = value.str_val();
  const bool percent =
      text.size() > 1 && text.back() == '%' && text.find_first_not_of("0123456789") == text.size() - 1;
  if (percent) return;
  errors.push_back(Invalid(
      path, text,
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
      "regex used for validation is '[0-9]+%')"));
}

void CheckPortNumberOrName(const intstr::IntOrString& port, const Path& path, FieldErrors& errors) {
  if (IsString(port)) {
    AddProblems(CheckPortName(port.str_val()), port.str_val(), path, errors);
    return;
  }
  for (const std::string& problem : CheckPortNumber(port.int_val())) {
    errors.push_back(Invalid(path, int64_t{port.int_val()}, problem));
  }
}

void CheckIpAddress(std::string_view value, const Path& path, FieldErrors& errors) {
  AddProblems(CheckIp(value), value, path, errors);
}

bool SameMessage(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return api::EncodeRaw(a) == api::EncodeRaw(b);
}

bool SameMap(const StringMap& a, const StringMap& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a) {
    const auto it = b.find(key);
    if (it == b.end() || it->second != value) return false;
  }
  return true;
}

bool SameStrings(const Strings& a, const Strings& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string PrintMap(const StringMap& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  std::string out = "{";
  for (const std::string& key : keys) {
    if (out.size() > 1) out += ',';
    out += Quote(key) + ":" + Quote(map.at(key));
  }
  return out + "}";
}

std::string PrintStrings(const Strings& strings) {
  std::string out = "[";
  for (const std::string& one : strings) {
    if (out.size() > 1) out += ',';
    out += Quote(one);
  }
  return out + "]";
}

void CheckImmutable(std::string_view value, std::string_view old, const Path& path, FieldErrors& errors) {
  if (value != old) errors.push_back(Invalid(path, value, kImmutable));
}

void CheckImmutable(const google::protobuf::Message& value, const google::protobuf::Message& old,
                    const Path& path, FieldErrors& errors) {
  if (!SameMessage(value, old)) errors.push_back(InvalidObject(path, value, kImmutable));
}

void CheckDescendingPath(std::string_view value, const Path& path, FieldErrors& errors) {
  if (value.starts_with("/")) errors.push_back(Invalid(path, value, "must be a relative path"));
  for (std::string_view rest = value;;) {
    const size_t slash = rest.find('/');
    if (rest.substr(0, slash) == "..") {
      errors.push_back(Invalid(path, value, "must not contain '..'"));
      return;
    }
    if (slash == std::string_view::npos) return;
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace keelson::k8s
