// Named formats of strings.
#include <algorithm>

#include "lib/api/names.h"
#include "lib/base/base64.h"
#include "lib/cel/library/go_url.h"
#include "lib/cel/library/library.h"
#include "lib/cel/library/opaque.h"
#include "lib/cel/values/containers.h"
#include "lib/cel/values/text_forms.h"
#include "lib/cel/values/time.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;
using Problems = std::vector<std::string>;

struct NamedFormat {
  std::string_view name;
  Problems (*check)(std::string_view text);
  uint64_t pattern_size;  // what costs count
};

// The name that a prefix, which may end with a dash, would have.
std::string MaskTrailingDash(std::string_view text) {
  std::string out(text);
  if (out.size() > 1 && out.back() == '-') out.back() = 'a';
  return out;
}

Problems LabelPrefix(std::string_view text) { return api::CheckDns1123Label(MaskTrailingDash(text)); }
Problems SubdomainPrefix(std::string_view text) { return api::CheckDns1123Subdomain(MaskTrailingDash(text)); }
Problems OldLabelPrefix(std::string_view text) { return api::CheckDns1035Label(MaskTrailingDash(text)); }

Problems Uri(std::string_view text) {
  auto url = GoUrl::Parse(text);
  return url ? Problems() : Problems{url.error().message()};
}

bool IsUuid(std::string_view text) {
  // With or without dashes between its groups.
  std::string digits;
  constexpr size_t kGroups[] = {8, 12, 16, 20};
  for (char c : text) {
    if (c == '-' && std::find(std::begin(kGroups), std::end(kGroups), digits.size()) != std::end(kGroups) &&
        (digits.size() != text.size())) {
      continue;
    }
    digits += c;
  }
  return digits.size() == 32 && digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

Problems Uuid(std::string_view text) {
  return IsUuid(text) ? Problems() : Problems{"does not match the UUID format"};
}
Problems Byte(std::string_view text) {
  return DecodeBase64(text, Base64::kStd, "\r\n") ? Problems() : Problems{"invalid base64"};
}
Problems Date(std::string_view text) { return ParseDate(text) ? Problems() : Problems{"invalid date"}; }
Problems DateTime(std::string_view text) {
  return ParseFormatDateTime(text) ? Problems() : Problems{"invalid datetime"};
}

// The sizes of patterns that upstream's libraries have for the last five.
constexpr uint64_t kUriPattern = 128, kUuidPattern = 90, kBase64Pattern = 87, kDateTimePattern = 103;

constexpr NamedFormat kFormats[] = {
    {"dns1123Label", api::CheckDns1123Label, 30},
    {"dns1123Subdomain", api::CheckDns1123Subdomain, 60},
    {"dns1035Label", api::CheckDns1035Label, 30},
    {"qualifiedName", api::CheckQualifiedName, 60},
    {"dns1123LabelPrefix", LabelPrefix, 30},
    {"dns1123SubdomainPrefix", SubdomainPrefix, 60},
    {"dns1035LabelPrefix", OldLabelPrefix, 30},
    {"labelValue", api::CheckLabelValue, 40},
    {"uri", Uri, kUriPattern},
    {"uuid", Uuid, kUuidPattern},
    {"byte", Byte, kBase64Pattern},
    {"date", Date, kDateTimePattern},
    {"datetime", DateTime, kDateTimePattern},
};

class FormatValue : public OpaqueOf<const NamedFormat*, types::kNamedFormat> {
 public:
  using OpaqueOf::OpaqueOf;
  uint64_t CostSize() const override { return value->pattern_size; }
};

Value Make(const NamedFormat& format, Arena& arena) { return Value::Opaque(arena.New<FormatValue>(&format)); }

template <size_t kIndex>
Value Constant(Args, Arena& arena) {
  return Make(kFormats[kIndex], arena);
}

Value Named(Args args, Arena& arena) {
  for (const NamedFormat& format : kFormats) {
    if (format.name == args[0].text()) return Value::Some(Make(format, arena), arena);
  }
  return Value::None();
}

Value Validate(Args args, Arena& arena) {
  const auto& format = static_cast<const FormatValue&>(args[0].opaque());
  std::vector<Value> problems;
  for (const std::string& problem : format.value->check(args[1].text())) {
    problems.push_back(Value::String(arena.Copy(problem)));
  }
  return problems.empty() ? Value::None() : Value::Some(MakeList(problems, arena), arena);
}

#define F "kubernetes.NamedFormat"
#define KEELSON_CEL_FORMAT(NAME, INDEX) \
  { "format." NAME, "format." NAME, "", "", F, 31, Constant<INDEX> }

const FunctionRow kFormatRows[] = {
    {"validate", "format-validate", F, "string", "optional<list<string>>", 31, Validate,
     CostRule::kValidateFormat},
    {"format.named", "format-named", "", "string", "optional<" F ">", 31, Named, CostRule::kNominal},
    KEELSON_CEL_FORMAT("dns1123Label", 0),
    KEELSON_CEL_FORMAT("dns1123Subdomain", 1),
    KEELSON_CEL_FORMAT("dns1035Label", 2),
    KEELSON_CEL_FORMAT("qualifiedName", 3),
    KEELSON_CEL_FORMAT("dns1123LabelPrefix", 4),
    KEELSON_CEL_FORMAT("dns1123SubdomainPrefix", 5),
    KEELSON_CEL_FORMAT("dns1035LabelPrefix", 6),
    KEELSON_CEL_FORMAT("labelValue", 7),
    KEELSON_CEL_FORMAT("uri", 8),
    KEELSON_CEL_FORMAT("uuid", 9),
    KEELSON_CEL_FORMAT("byte", 10),
    KEELSON_CEL_FORMAT("date", 11),
    KEELSON_CEL_FORMAT("datetime", 12),
};
#undef F

}  // namespace

std::span<const FunctionRow> FormatFunctions() { return kFormatRows; }

}  // namespace keelson::cel
