// Bodies: JSON, YAML, the protobuf envelope, and edits of stored bytes.
#include <boost/json/parse.hpp>

#include "controlplane/apiserver/request/yaml.h"
#include "controlplane/storage/wire.h"
#include "lib/api/codec/codec.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

using api::Message;

// The type in the input's kind; pods by default.
const api::Descriptor* TypeOf(const api::TypeMeta& meta) {
  auto [group, version] = api::SplitApiVersion(meta.api_version);
  const api::Descriptor* type = api::FindMessage(group, version, meta.kind);
  return type ? type : corev1::Pod::descriptor();
}

// An accepted object survives a round trip through either format.
void CheckRoundTrip(const Message& object) {
  std::string json = api::EncodeJson(object), raw = api::EncodeRaw(object);
  std::unique_ptr<Message> copy = api::NewObject(object.GetDescriptor());
  Result<> decoded = api::DecodeJson(json, *copy);
  FUZZ_CHECK(decoded, json + "\n" + decoded.error().message());
  // Free-form JSON is preserved, but written with HTML escapes, as in Go.
  bool escaped = json.find("\\u00") != std::string::npos || json.find("\\u202") != std::string::npos;
  FUZZ_CHECK(api::EncodeRaw(*copy) == raw || escaped, json);
  FUZZ_CHECK(api::EncodeJson(*copy) == json, json);
  FUZZ_CHECK(api::DecodeRaw(raw, *copy), json);
  FUZZ_CHECK(api::EncodeJson(*copy) == json, json);
  std::string direct;
  api::WireToJson(object.GetDescriptor(), raw, nullptr, direct);
  FUZZ_CHECK(direct == json, json + "\n" + direct);
}

void DecodeBody(std::string_view json) {
  Result<api::TypeMeta> meta = api::PeekTypeMeta(json);
  std::unique_ptr<Message> object = api::NewObject(TypeOf(meta ? *meta : api::TypeMeta()));
  api::DecodeReport report;
  if (!api::DecodeJson(json, *object, &report)) return;
  FUZZ_CHECK(meta.has_value(), json);
  CheckRoundTrip(*object);
  // Direct encoding to bytes equals encoding through the object.
  std::string wire;
  FUZZ_CHECK(api::JsonToWire(object->GetDescriptor(), json, wire), json);
  std::unique_ptr<Message> copy = api::NewObject(object->GetDescriptor());
  FUZZ_CHECK(api::DecodeRaw(wire, *copy), json);
  FUZZ_CHECK(api::EncodeRaw(*copy) == api::EncodeRaw(*object), json);
}

void DecodeYaml(std::string_view yaml) {
  Result<std::string> json = apiserver::YamlToJson(yaml);
  if (!json) return;
  boost::system::error_code error;
  boost::json::parse_options options;
  options.max_depth = 1000;
  boost::json::parse(*json, error, {}, options);
  FUZZ_CHECK(!error, *json);
  FUZZ_CHECK(json->size() < (64u << 20), "aliases have grown the document");
  DecodeBody(*json);
}

void DecodeEnvelope(std::string_view bytes) {
  Result<api::Envelope> envelope = api::OpenEnvelope(bytes);
  if (!envelope) return;
  std::unique_ptr<Message> object = api::NewObject(TypeOf(envelope->type_meta));
  std::string json;
  api::WireToJson(object->GetDescriptor(), envelope->raw, nullptr, json);
  if (!api::DecodeProtobuf(bytes, *object)) return;
  CheckRoundTrip(*object);
}

// Stored bytes may be arbitrary: reading them is safe, and accepted ones keep their meaning.
void StoredBytes(std::string_view raw) {
  std::string out;
  if (!storage::AppendWithRevision(raw, 42, out)) return;
  corev1::Pod before, after;
  if (!api::DecodeRaw(raw, before)) return;
  FUZZ_CHECK(api::DecodeRaw(out, after), "with a revision it cannot be read");
  FUZZ_CHECK(after.metadata().resource_version() == "42", after.metadata().resource_version());
  before.mutable_metadata()->set_resource_version("42");
  FUZZ_CHECK(api::EncodeRaw(before) == api::EncodeRaw(after), before.DebugString() + after.DebugString());
  const char* end = out.data() + out.size();
  for (const auto& [key, value] : storage::FindLabels(out)) {
    FUZZ_CHECK(key.empty() || (key.data() > out.data() && key.data() + key.size() <= end), "a label outside");
  }
}

const Registration kJson("json", DecodeBody), kYaml("yaml", DecodeYaml),
    kEnvelope("envelope", DecodeEnvelope), kStored("stored", StoredBytes);

}  // namespace
}  // namespace keelson::fuzz
