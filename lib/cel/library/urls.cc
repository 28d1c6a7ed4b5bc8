// URLs, and jsonpatch.escapeKey of mutating policies.
#include "lib/cel/library/go_url.h"
#include "lib/cel/library/library.h"
#include "lib/cel/library/opaque.h"
#include "lib/cel/values/containers.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;
using UrlValue = OpaqueOf<GoUrl, types::kUrl>;

const GoUrl& UrlOf(const Value& value) { return static_cast<const UrlValue&>(value.opaque()).value; }
Value Text(const std::string& text, Arena& arena) { return Value::String(arena.Copy(text)); }

Value ToUrl(Args args, Arena& arena) {
  auto url = GoUrl::Parse(args[0].text());
  if (!url) {
    return Value::Error("URL parse error during conversion from string: " + url.error().message(), arena);
  }
  return Value::Opaque(arena.New<UrlValue>(std::move(*url)));
}

Value IsUrl(Args args, Arena&) { return Value::Bool(GoUrl::Parse(args[0].text()).has_value()); }
Value GetScheme(Args args, Arena& arena) { return Text(UrlOf(args[0]).scheme, arena); }
Value GetHost(Args args, Arena& arena) { return Text(UrlOf(args[0]).host, arena); }
Value GetHostname(Args args, Arena& arena) { return Text(UrlOf(args[0]).Hostname(), arena); }
Value GetPort(Args args, Arena& arena) { return Text(UrlOf(args[0]).Port(), arena); }
Value GetEscapedPath(Args args, Arena& arena) { return Text(UrlOf(args[0]).EscapedPath(), arena); }

Value GetQuery(Args args, Arena& arena) {
  auto* out = arena.New<HashMap>();
  for (const auto& [key, values] : UrlOf(args[0]).Query()) {
    std::vector<Value> items;
    for (const std::string& value : values) items.push_back(Text(value, arena));
    out->Insert(Text(key, arena), MakeList(items, arena));
  }
  return Value::Map(out);
}

Value EscapeKey(Args args, Arena& arena) {
  std::string out;
  for (char c : args[0].text()) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return Text(out, arena);
}

#define U "kubernetes.URL"
constexpr CostRule kOneEach = CostRule::kNominal;

const FunctionRow kUrlRows[] = {
    {"url", "string_to_url", "", "string", U, 0, ToUrl, CostRule::kConvertText},
    {"getScheme", "url_get_scheme", U, "", "string", 0, GetScheme, kOneEach},
    {"getHost", "url_get_host", U, "", "string", 0, GetHost, kOneEach},
    {"getHostname", "url_get_hostname", U, "", "string", 0, GetHostname, kOneEach},
    {"getPort", "url_get_port", U, "", "string", 0, GetPort, kOneEach},
    {"getEscapedPath", "url_get_escaped_path", U, "", "string", 0, GetEscapedPath, kOneEach},
    {"getQuery", "url_get_query", U, "", "map<string,list<string>>", 0, GetQuery, kOneEach},
    {"isURL", "is_url_string", "", "string", "bool", 0, IsUrl},
};
#undef U

const FunctionRow kJsonPatchRows[] = {
    {"jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", "", "string", "string", 0, EscapeKey,
     CostRule::kConvertText},
};

}  // namespace

std::span<const FunctionRow> UrlFunctions() { return kUrlRows; }
std::span<const FunctionRow> JsonPatchFunctions() { return kJsonPatchRows; }

}  // namespace keelson::cel
