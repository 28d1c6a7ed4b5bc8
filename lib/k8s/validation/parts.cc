#include "lib/k8s/validation/parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/base/text.h"
#include "lib/k8s/internal_form.h"

namespace keelson::k8s {

namespace {

constexpr size_t kDriverNameBytes = 63, kDomainBytes = 253, kLabelBytes = 63;
constexpr size_t kReasonBytes = 1024, kMessageBytes = 32 * 1024;

bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsConditionReason(std::string_view value) {
  if (value.empty() || !IsAlpha(value.front())) return false;
  const auto inner = [](char c) { return IsAlpha(c) || IsDigit(c) || c == '_' || c == ',' || c == ':'; };
  if (!std::all_of(value.begin(), value.end(), inner)) return false;
  return value.back() != ',' && value.back() != ':';
}

void CheckCondition(const metav1::Condition& condition, const Path& path, FieldErrors& errors) {
  CheckLabelKey(condition.type(), path.Child("type"), errors);
  CheckOneOf(condition.status(), {"False", "True", "Unknown"}, path.Child("status"), errors);
  if (condition.observed_generation() < 0) {
    errors.push_back(Invalid(path.Child("observedGeneration"), condition.observed_generation(),
                             "must be greater than or equal to zero"));
  }
  if (!condition.has_last_transition_time()) {
    errors.push_back(Required(path.Child("lastTransitionTime"), "must be set"));
  }
  const Path reason = path.Child("reason");
  if (condition.reason().empty()) {
    errors.push_back(Required(reason, "must be set"));
  } else {
    if (!IsConditionReason(condition.reason())) {
      errors.push_back(Invalid(
          reason, condition.reason(),
          "a condition reason must start with alphabetic character, optionally followed by a string of "
          "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
          "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used "
          "for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"));
    }
    if (condition.reason().size() > kReasonBytes) errors.push_back(TooLong(reason, kReasonBytes));
  }
  if (condition.message().size() > kMessageBytes) {
    errors.push_back(TooLong(path.Child("message"), kMessageBytes));
  }
}

}  // namespace

Problems CheckWildcardDns1123Subdomain(std::string_view value) {
  Problems out;
  if (value.size() > kDomainBytes) out.push_back(fmt::format("must be no more than {} bytes", kDomainBytes));
  const bool matches = value.starts_with("*.") && CheckDns1123Subdomain(value.substr(2)).empty();
  if (!matches) {
    out.push_back(
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
        "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
        "(e.g. '*.example.com', regex used for validation is "
        "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
  }
  return out;
}

Problems CheckAnyName(std::string_view) { return {}; }

void CheckCsiDriverName(std::string_view value, const Path& path, FieldErrors& errors) {
  if (value.empty()) errors.push_back(Required(path));
  if (value.size() > kDriverNameBytes) errors.push_back(TooLong(path, kDriverNameBytes));
  if (!value.empty()) AddProblems(CheckDns1123Subdomain(Lower(value)), value, path, errors);
}

void CheckDomainPrefixedPath(std::string_view value, const Path& path, FieldErrors& errors) {
  if (value.empty()) {
    errors.push_back(Required(path));
    return;
  }
  const size_t slash = value.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == value.size()) {
    errors.push_back(Invalid(path, value, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
    return;
  }
  for (const std::string& problem : CheckDns1123Subdomain(value.substr(0, slash))) {
    errors.push_back(Invalid(path, value.substr(0, slash), problem));
  }
  for (char c : value.substr(slash + 1)) {
    const bool allowed = IsAlpha(c) || IsDigit(c) ||
                         std::string_view("/:?#[]@!$&'()*+,;=%._~-").find(c) != std::string_view::npos;
    if (allowed) continue;
    errors.push_back(
        Invalid(path, value.substr(slash + 1),
                "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"));
    break;
  }
}

void CheckFullyQualifiedName(std::string_view value, const Path& path, FieldErrors& errors) {
  if (value.empty()) {
    errors.push_back(Required(path));
  } else if (const Problems problems = CheckDns1123Subdomain(value); !problems.empty()) {
    errors.push_back(Invalid(path, value, Join(problems, ",")));
  } else if (std::count(value.begin(), value.end(), '.') < 2) {
    errors.push_back(
        Invalid(path, value, "should be a domain with at least three segments separated by dots"));
  }
}

void CheckFullyQualifiedDomain(std::string_view value, const Path& path, FieldErrors& errors) {
  if (value.empty()) {
    errors.push_back(Required(path));
    return;
  }
  if (value.back() == '.') value.remove_suffix(1);
  if (const Problems problems = CheckDns1123Subdomain(value); !problems.empty()) {
    errors.push_back(Invalid(path, value, Join(problems, ",")));
    return;
  }
  if (value.find('.') == std::string_view::npos) {
    errors.push_back(Invalid(path, value, "should be a domain with at least two segments separated by dots"));
    return;
  }
  for (std::string_view label : Split(value, '.')) {
    if (const Problems problems = CheckDns1123Label(label); !problems.empty()) {
      errors.push_back(Invalid(path, label, Join(problems, ",")));
    }
  }
}

void CheckSigner(std::string_view value, const Path& path, FieldErrors& errors) {
  if (value.empty()) {
    errors.push_back(Required(path));
    return;
  }
  const std::vector<std::string_view> parts = Split(value, '/');
  if (parts.size() != 2) {
    errors.push_back(Invalid(
        path, value, "must be a fully qualified domain and path of the form 'example.com/signer-name'"));
    return;
  }
  if (parts[0].size() > kDomainBytes) errors.push_back(TooLong(path, kDomainBytes));
  const auto labels = Split(parts[0], '.');
  const auto complain = [&](std::string_view label, const Problems& problems, std::string_view part) {
    for (const std::string& problem : problems) {
      errors.push_back(Invalid(path, part, fmt::format("validating label {}: {}", Quote(label), problem)));
    }
    return !problems.empty();
  };
  for (std::string_view label : labels) {
    if (complain(label, CheckDns1123Label(label), parts[0])) break;
  }
  if (labels.size() < 2) {
    errors.push_back(
        Invalid(path, parts[0], "should be a domain with at least two segments separated by dots"));
  }
  for (std::string_view label : Split(parts[1], '.')) {
    if (complain(label, CheckDns1123Subdomain(label), parts[1])) break;
  }
  constexpr size_t kMax = kDomainBytes + (kDomainBytes + kLabelBytes + 1) + 1;
  if (value.size() > kMax) errors.push_back(TooLong(path, kMax));
}

void CheckFinalizer(std::string_view value, const Path& path, FieldErrors& errors) {
  AddProblems(CheckQualifiedName(value), value, path, errors);
  const bool standard = value == "kubernetes" || value == "orphan" || value == "foregroundDeletion";
  if (value.find('/') == std::string_view::npos && !standard) {
    errors.push_back(
        Invalid(path, value, "name is neither a standard finalizer name nor is it fully qualified"));
  }
}

void CheckOneOf(std::string_view value, const std::vector<std::string_view>& supported, const Path& path,
                FieldErrors& errors) {
  if (std::find(supported.begin(), supported.end(), value) != supported.end()) return;
  errors.push_back(NotSupported(path, value, supported));
}

FieldError InvalidInternal(const Path& path, const google::protobuf::Message& value,
                           std::string_view detail) {
  return InvalidRaw(path, PrintInternal(value), detail);
}

FieldError DuplicateInternal(const Path& path, const google::protobuf::Message& value,
                             std::string_view detail) {
  FieldError error = InvalidInternal(path, value, detail);
  error.type = FieldError::Type::kDuplicate;
  return error;
}

void CheckFrozen(const google::protobuf::Message& value, const google::protobuf::Message& old,
                 const Path& path, FieldErrors& errors) {
  if (!SameMessage(value, old)) errors.push_back(InvalidInternal(path, value, kImmutable));
}

int SignOf(const Quantity& quantity) {
  const api::Amount amount = api::Amount::Of(quantity);
  return amount < api::Amount() ? -1 : amount == api::Amount() ? 0 : 1;
}

void CheckNonNegativeQuantity(const Quantity& quantity, const Path& path, FieldErrors& errors) {
  if (SignOf(quantity) < 0) {
    errors.push_back(Invalid(path, api::Amount::Of(quantity).ToString(), kNotNegative));
  }
}

void CheckPositiveQuantity(const Quantity& quantity, const Path& path, FieldErrors& errors) {
  if (SignOf(quantity) <= 0) {
    errors.push_back(Invalid(path, api::Amount::Of(quantity).ToString(), "must be greater than zero"));
  }
}

std::vector<std::string> SortedKeys(const QuantityMap& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::vector<std::string> SortedKeys(const StringMap& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  return keys;
}

bool Contains(const Strings& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void CheckLoneWildcard(const Strings& list, std::string_view what, const Path& path, FieldErrors& errors) {
  if (list.size() < 2 || !Contains(list, "*")) return;
  errors.push_back(InvalidRaw(path, PrintStrings(list),
                              fmt::format("if '*' is present, must not specify other {}", what)));
}

void CheckConditions(const google::protobuf::RepeatedPtrField<metav1::Condition>& conditions,
                     const Path& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (int i = 0; i < conditions.size(); ++i) {
    const Path item = path.Index(i);
    if (!seen.insert(conditions[i].type()).second) {
      errors.push_back(Duplicate(item.Child("type"), conditions[i].type()));
    }
    CheckCondition(conditions[i], item, errors);
  }
}

}  // namespace keelson::k8s
