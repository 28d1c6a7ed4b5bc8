// Internal to lib/api: what the codec needs to know about a message type, from its descriptor and
// annotations. Tables are built on first use and live as long as the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "lib/api/proto/options.pb.h"

namespace keelson::api {

struct MessageInfo;

enum class ValueKind : uint8_t { kString, kBytes, kBool, kInt32, kInt64, kDouble, kMessage };

struct FieldInfo {
  const google::protobuf::FieldDescriptor* descriptor = nullptr;
  std::string_view json_name;
  std::string quoted;  // "name": with quotes, for JSON
  uint32_t number = 0;
  ValueKind kind = ValueKind::kString;  // of the value, a list's items or a map's values
  bool repeated = false;                // a list, not a map
  bool map = false;
  bool pointer = false;                  // an explicit zero counts as present
  bool always = false;                   // printed even when absent
  bool inlined = false;                  // the value's fields belong to the parent's object
  bool omit_zero = false;                // a value-form message that Go leaves out when zero
  bool empty_list = false;               // prints [] rather than null when empty
  bool rest = false;                     // holds the members that no other field has; no key of its own
  const MessageInfo* message = nullptr;  // of kMessage
  std::string type_meta;  // items that print their kind and apiVersion: `"kind":"X","apiVersion":"v1"`
};

// A name in a message's JSON object. `path` leads to a field of inlined messages, outermost first.
struct JsonKey {
  const FieldInfo* field;
  std::vector<const FieldInfo*> path;
};

struct MessageInfo {
  const google::protobuf::Descriptor* descriptor = nullptr;
  JsonForm form = JSON_OBJECT;
  bool has_type_meta = false;     // a kind of its own: its JSON may have apiVersion and kind
  std::vector<FieldInfo> fields;  // in declaration order, which is JSON's
  std::vector<JsonKey> keys;
  const FieldInfo* rest = nullptr;  // the field with `rest`; null: unknown members are dropped

  const FieldInfo* ByNumber(uint32_t number) const {
    return number < by_number.size() && by_number[number] >= 0 ? &fields[by_number[number]] : nullptr;
  }
  // Index into keys, or -1. Objects usually come in declaration order, so `hint` is tried first.
  int FindKey(std::string_view name, size_t hint) const {
    if (hint < keys.size() && keys[hint].field->json_name == name) return static_cast<int>(hint);
    return LookUp(name);
  }
  int LookUp(std::string_view name) const;
  void IndexKeys();

  std::vector<int16_t> by_number;
  std::vector<int16_t> hashed;  // open addressing, a power of two long
};

constexpr size_t kMaxJsonKeys = 128;  // of one message

const MessageInfo& InfoOf(const google::protobuf::Descriptor* descriptor);

// The name of the field's type in Go's errors: int32, []v1.Container, map[string]string.
std::string GoTypeOf(const FieldInfo& field);
std::string GoTypeOf(const MessageInfo& message);

}  // namespace keelson::api
