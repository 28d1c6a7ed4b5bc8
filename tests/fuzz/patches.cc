// Patches of each type, on one object with all kinds of fields.
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/patch/patch.h"
#include "tests/fuzz/documents.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

// The result of a patch is rejected, or decodes to an object that can be written again.
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
