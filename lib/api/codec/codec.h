// JSON and protobuf forms of API objects. Tables drive the codec; they are built once per type from the
// descriptors and their annotations (lib/api/proto/options.proto).
//
// Objects in memory are canonical: a value-form field that is zero is absent (has_x() is false), so the
// JSON and the protobuf form of one object decode to equal messages. EncodeJson() prints what Go prints:
// value-form fields without omitempty even when zero, value-form structs always.
//
// All functions are thread safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::api {

// ---- JSON ----

// The findings of strict field validation, in order of appearance and in upstream's words: `unknown field
// "spec.foo"`, `duplicate field "spec.replicas"`.
struct DecodeReport {
  std::vector<std::string> problems;
};

struct TypeMeta {
  std::string api_version, kind;
};

// Fills `object` (cleared first) from a JSON object. `type_meta`, if given, receives apiVersion and kind;
// otherwise they are accepted and dropped. `report`, if given, receives unknown and duplicate fields;
// otherwise they are ignored. The last duplicate wins; field names match case-sensitively. kBadRequest for
// wrong types and malformed JSON, in upstream's words:
//   json: cannot unmarshal string into Go struct field PodSpec.spec.replicas of type int32
Result<> DecodeJson(std::string_view json, Message& object, DecodeReport* report = nullptr,
                    TypeMeta* type_meta = nullptr);

// Reads only apiVersion and kind, without building the object.
Result<TypeMeta> PeekTypeMeta(std::string_view json);

// Appends the object's JSON. With `gvk`, kind and apiVersion come first. Fields are in declaration order,
// map keys sorted.
void EncodeJson(const Message& object, const GroupVersionKind* gvk, std::string& out);
std::string EncodeJson(const Message& object, const GroupVersionKind& gvk);
std::string EncodeJson(const Message& object);  // without kind and apiVersion

// Convert between JSON and the object's wire bytes (no envelope) without building the object: for data that
// is stored, cached or passed on. JsonToWire() appends canonical bytes in the order of the input's fields,
// so equal objects may give different bytes. WireToJson() accepts bytes that Go wrote (zeros, unknown
// fields) and skips malformed ones.
Result<> JsonToWire(const Descriptor* descriptor, std::string_view json, std::string& wire,
                    DecodeReport* report = nullptr, TypeMeta* type_meta = nullptr);
void WireToJson(const Descriptor* descriptor, std::string_view raw, const GroupVersionKind* gvk,
                std::string& out);

// Indents by two spaces per level, like `?pretty=true` and kubectl --raw. `json` must be valid.
std::string PrettyJson(std::string_view json);

// ---- protobuf ----

// application/vnd.kubernetes.protobuf: "k8s\0" and a runtime.Unknown around the object.
inline constexpr std::string_view kProtobufMagic{"k8s\0", 4};

// Deterministic: equal objects give equal bytes.
std::string EncodeProtobuf(const Message& object, const GroupVersionKind& gvk);
std::string EncodeRaw(const Message& object);  // the object alone

struct Envelope {
  TypeMeta type_meta;
  std::string_view raw;  // points into the input
};
Result<Envelope> OpenEnvelope(std::string_view bytes);  // kBadRequest if it is no envelope
// Parses and normalises (clears value-form zeros). Drops fields that the schema does not know.
Result<> DecodeProtobuf(std::string_view bytes, Message& object, TypeMeta* type_meta = nullptr);  // envelope
Result<> DecodeRaw(std::string_view raw, Message& object);  // object alone
// Clears value-form zeros and canonicalises quantities and times, everywhere in the object;
// DecodeProtobuf() does this with its input. If anything changes, references into the object become
// invalid.
void Normalize(Message& object);
// Like Normalize(), on wire bytes: appends the normal form, in the order of the input's fields.
Result<> NormalizeWire(const Descriptor* descriptor, std::string_view raw, std::string& out);

}  // namespace keelson::api
