// JSON and protobuf forms of API objects. The codec is driven by tables made from the descriptors and
// their annotations (proto/options.proto), once a type.
//
// Objects in memory are canonical: a value-form field that is zero is absent (has_x() is false), so the
// JSON and the protobuf form of one object decode to equal messages. EncodeJson prints what Go prints:
// value-form fields without omitempty even when zero, value-form structs always.
//
// All functions are thread safe and free of global state but the tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::api {

// ---- JSON ----

// What strict field validation reports, in order of appearance, in upstream's words:
// `unknown field "spec.foo"`, `duplicate field "spec.replicas"`.
struct DecodeReport {
  std::vector<std::string> problems;
};

struct TypeMeta {
  std::string api_version, kind;
};

// Fills `object` (cleared first) from a JSON object. apiVersion and kind are returned by `type_meta` when
// it is given, and are otherwise accepted and dropped. Unknown and duplicate fields go to `report` when
// given and are ignored otherwise (the last duplicate wins; field names match case-sensitively).
// Wrong types and malformed JSON: kBadRequest, worded as upstream does:
//   json: cannot unmarshal string into Go struct field PodSpec.spec.replicas of type int32
Result<> DecodeJson(std::string_view json, Message& object, DecodeReport* report = nullptr,
                    TypeMeta* type_meta = nullptr);

// Only apiVersion and kind, without building the object.
Result<TypeMeta> PeekTypeMeta(std::string_view json);

// Appends the object's JSON; `gvk` adds kind and apiVersion first. Keys are in field order, map keys sorted.
void EncodeJson(const Message& object, const GroupVersionKind* gvk, std::string& out);
std::string EncodeJson(const Message& object, const GroupVersionKind& gvk);
std::string EncodeJson(const Message& object);  // without kind and apiVersion

// The same between JSON and the object's wire bytes (no envelope), without building the object: for what is
// stored, cached or passed on. JsonToWire appends canonical bytes in the order of the input's fields, not
// deterministic ones; WireToJson accepts bytes that Go wrote (zeros, unknown fields) and skips what is
// malformed.
Result<> JsonToWire(const Descriptor* descriptor, std::string_view json, std::string& wire,
                    DecodeReport* report = nullptr, TypeMeta* type_meta = nullptr);
void WireToJson(const Descriptor* descriptor, std::string_view raw, const GroupVersionKind* gvk,
                std::string& out);

// Two spaces a level, as `?pretty=true` and kubectl --raw show it. `json` must be valid.
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
Result<Envelope> OpenEnvelope(std::string_view bytes);  // kBadRequest when it is none
// Parses and normalises (value-form zeros cleared). Fields that the schema does not know are dropped.
Result<> DecodeProtobuf(std::string_view bytes, Message& object, TypeMeta* type_meta = nullptr);  // envelope
Result<> DecodeRaw(std::string_view raw, Message& object);  // object alone
// Clears value-form zeros throughout, canonicalises quantities and times; what DecodeProtobuf does with its
// input. References into the object are invalid afterwards if there was anything to change.
void Normalize(Message& object);
// The same on wire bytes: appends the normal form, in the order of the input's fields.
Result<> NormalizeWire(const Descriptor* descriptor, std::string_view raw, std::string& out);

}  // namespace keelson::api
