// Patches of each type, on one object that has all that they can touch.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec.h"
#include "lib/api/patch.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

namespace json = boost::json;

constexpr const char* kPod = R"({"kind":"Pod","apiVersion":"v1",
"metadata":{"name":"p","namespace":"default","labels":{"app":"web","tier":"1"},"finalizers":["a/b","c/d"],
  "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"}]},
"spec":{"volumes":[{"name":"v","emptyDir":{}},{"name":"w","hostPath":{"path":"/w"}}],
  "containers":[{"name":"a","image":"x","env":[{"name":"E","value":"1"}],
      "ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}]},
    {"name":"b","image":"y","command":["sh","-c"]}],
  "tolerations":[{"key":"k"}],"nodeSelector":{"a":"b"}},
"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})";

json::parse_options Deep() {
  json::parse_options options;
  options.max_depth = 1000;
  return options;
}

bool Parse(std::string_view text, json::value& out) {
  boost::system::error_code error;
  out = json::parse(text, error, {}, Deep());
  return !error;
}

const json::value& Document() {
  static const json::value* document = new json::value(json::parse(kPod));
  return *document;
}

// Whatever a patch leaves is refused or decodes to an object that can be written again.
void CheckResult(const json::value& patched) {
  std::string text = json::serialize(patched);
  corev1::Pod pod, copy;
  api::DecodeReport report;
  if (!api::DecodeJson(text, pod, &report)) return;
  FUZZ_CHECK(api::DecodeJson(api::EncodeJson(pod), copy), text);
  FUZZ_CHECK(api::EncodeRaw(pod) == api::EncodeRaw(copy), text);
}

void JsonPatch(std::string_view text) {
  json::value patch;
  if (!Parse(text, patch)) return;
  if (Result<json::value> patched = api::ApplyJsonPatch(Document(), patch)) CheckResult(*patched);
}

void MergePatch(std::string_view text) {
  json::value patch;
  if (!Parse(text, patch)) return;
  json::value once = api::ApplyMergePatch(Document(), patch);
  CheckResult(once);
  FUZZ_CHECK(api::ApplyMergePatch(once, patch) == once, text);  // RFC 7386: idempotent
}

void StrategicMergePatch(std::string_view text) {
  json::value patch;
  if (!Parse(text, patch)) return;
  const api::TypeView& type = api::TypeViewOf(corev1::Pod::descriptor());
  if (auto patched = api::ApplyStrategicMergePatch(Document(), patch, type)) CheckResult(*patched);
}

const Registration kJson("json_patch", JsonPatch), kMerge("merge_patch", MergePatch),
    kStrategic("strategic_merge_patch", StrategicMergePatch);

}  // namespace
}  // namespace keelson::fuzz
