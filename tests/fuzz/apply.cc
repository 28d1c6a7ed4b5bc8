// Server-side apply: managedFields sets, and configurations merged into an object.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/apply/typed.h"
#include "lib/api/codec/codec.h"
#include "tests/fuzz/documents.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

using api::FieldSet;

void FieldsV1(std::string_view text) {
  Result<FieldSet> set = FieldSet::FromJson(text);
  if (!set) return;
  std::string printed = set->ToJson();
  Result<FieldSet> again = FieldSet::FromJson(printed);
  FUZZ_CHECK(again, printed);
  FUZZ_CHECK(*again == *set, printed);
  FUZZ_CHECK(again->ToJson() == printed, printed);
  FieldSet both = *set;
  both.UnionWith(*again);
  FUZZ_CHECK(both == *set, printed);
  FUZZ_CHECK(set->Intersection(*again) == *set, printed);
  set->ForEach([&](const api::FieldPath& path) {
    FUZZ_CHECK(again->Has(path), api::PrintPath(path));
    FUZZ_CHECK(!api::PrintPath(path).empty(), printed);
  });
  both.Subtract(*again);
  FUZZ_CHECK(both.Empty(), printed);
}

// Both comparison methods agree on the difference between the pod before and after a patch.
void CheckComparison(const api::Shape& shape, const json::value& patched) {
  corev1::Pod before, after;
  if (!api::DecodeJson(kPod, before) || !api::DecodeJson(json::serialize(patched), after)) return;
  json::value old_json = json::parse(api::EncodeJson(before)), new_json = json::parse(api::EncodeJson(after));
  if (!api::CheckShape(shape, new_json, true).empty()) return;
  api::Comparison by_wire;
  if (!api::CompareWire(shape, api::EncodeRaw(before), api::EncodeRaw(after), by_wire)) return;
  api::Comparison by_json = api::CompareJson(shape, old_json, new_json);
  auto same = [&](const FieldSet& a, const FieldSet& b) {
    FUZZ_CHECK(a == b, a.ToJson() + "\n" + b.ToJson() + "\n" + json::serialize(new_json));
  };
  same(by_wire.added, by_json.added);
  same(by_wire.modified, by_json.modified);
  same(by_wire.removed, by_json.removed);
}

void Apply(std::string_view text) {
  json::value config;
  if (!Parse(text, config)) return;
  const api::Shape& shape = api::ShapeOf(corev1::Pod::descriptor());
  if (!api::CheckShape(shape, config, false).empty()) return;
  FieldSet fields = api::FieldsOf(shape, config);
  Result<FieldSet> read = FieldSet::FromJson(fields.ToJson());
  FUZZ_CHECK(read, fields.ToJson());
  FUZZ_CHECK(*read == fields, fields.ToJson());
  json::value merged = api::MergeShaped(shape, Document(), config);
  FUZZ_CHECK(api::SameJson(api::MergeShaped(shape, merged, config), merged), json::serialize(merged));
  FUZZ_CHECK(api::CompareJson(shape, merged, merged).Empty(), json::serialize(merged));
  CheckComparison(shape, merged);
  json::value rest = api::RemoveFields(shape, merged, fields);
  (void)api::ExtractFields(shape, merged, api::WithNamedFields(shape, fields));
  (void)json::serialize(rest);
}

const Registration kFieldsV1("fields_v1", FieldsV1), kApply("apply", Apply);

}  // namespace
}  // namespace keelson::fuzz
