// Schemas of custom resources, JSON paths, and the responses of conversion webhooks.
#include <boost/json.hpp>

#include "controlplane/apiserver/crd/conversion_review.h"
#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/k8s/schema/json_path.h"
#include "lib/k8s/schema/rules.h"
#include "lib/k8s/schema/structural_schema.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

namespace json = boost::json;

const json::value& Object() {
  static const json::value object = json::parse(
      R"({"apiVersion":"e.com/v1","kind":"E","metadata":{"name":"e","labels":{"a":"b"}},)"
      R"("spec":{"a":1,"b":"text","c":[{"name":"x","v":1},{"name":"y"}],"d":{"k":null},"e":true,"f":1.5},)"
      R"("status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  return object;
}

// A schema is refused, or makes an object that it leaves alone the second time.
void Schema(std::string_view text) {
  api::apiextensions::v1::JSONSchemaProps props;
  if (!api::DecodeJson(text, props)) return;
  auto schema = k8s::StructuralSchema::Compile(props);
  if (!schema) return;
  json::value object = Object();
  if (!k8s::CoerceObject(**schema, object)) return;
  k8s::DefaultObject(**schema, object);
  json::value again = object;
  Result<std::vector<std::string>> unknown = k8s::CoerceObject(**schema, again);
  FUZZ_CHECK(unknown, text);
  k8s::FieldErrors errors = k8s::ValidateSchema(**schema, object);
  k8s::ValidateListTypes(**schema, object, &Object());
  if (errors.empty() && (*schema)->has_rules()) k8s::ValidateRules(**schema, object, &Object(), errors);
  FUZZ_CHECK((*schema)->bytes() > 0, text);
}

void Path(std::string_view text) {
  Result<k8s::JsonPath> path = k8s::JsonPath::Parse(text);
  if (!path) return;
  const std::vector<const json::value*> found = path->Find(Object());
  FUZZ_CHECK(path->First(Object()) == (found.empty() ? nullptr : found[0]), text);
  for (const char* type : {"string", "integer", "number", "boolean", "date"}) {
    const json::value cell = k8s::PrinterCell(*path, type, Object(), 1'700'000'000);
    FUZZ_CHECK(!cell.is_object() && !cell.is_array(), text);
  }
}

// What is accepted answers this request and says so.
void Conversion(std::string_view text) {
  for (const char* version : {"v1", "v1beta1"}) {
    const apiserver::ConversionRequest request{version, "u", ""};
    Result<std::vector<std::string>> objects = apiserver::ReadConversionResponse(text, request);
    if (!objects) {
      FUZZ_CHECK(objects.error().Is(Code::kInternal), text);
      continue;
    }
    for (const std::string& object : *objects) {
      FUZZ_CHECK(object.empty() || api::ParseTree(object), text);  // null comes as nothing
    }
  }
}

const Registration kSchema("schema", Schema);
const Registration kPath("json_path", Path);
const Registration kConversion("conversion_review", Conversion);

}  // namespace
}  // namespace keelson::fuzz
