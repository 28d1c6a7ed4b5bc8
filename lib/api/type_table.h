// Internal to lib/api: what the codec needs to know of a message type, read once from its descriptor and
// annotations. Tables are built on first use and live for ever.
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
  std::string quoted;  // "name": as it stands in JSON
  uint32_t number = 0;
  ValueKind kind = ValueKind::kString;  // of the value, of a list's items or of a map's values
  bool repeated = false;                // a list; maps are not counted
  bool map = false;
  bool pointer = false;                  // an explicit zero counts as present
  bool always = false;                   // printed even when absent
  bool inlined = false;                  // the value's fields stand in the parent's object
  bool omit_zero = false;                // a value-form message that Go leaves out when zero
  bool empty_list = false;               // prints [] rather than null when empty
  const MessageInfo* message = nullptr;  // of kMessage
  std::string type_meta;  // items that print their kind and apiVersion: `"kind":"X","apiVersion":"v1"`
};

// A name in a message's JSON object. Fields of inlined messages are reached by `path`, outermost first.
struct JsonKey {
  const FieldInfo* field;
  std::vector<const FieldInfo*> path;
};

struct MessageInfo {
  const google::protobuf::Descriptor* descriptor = nullptr;
  JsonForm form = JSON_OBJECT;
  bool has_type_meta = false;     // a kind of its own: apiVersion and kind may stand in its JSON
  std::vector<FieldInfo> fields;  // in the order of their declaration, which is JSON's
  std::vector<JsonKey> keys;

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

// How Go's error messages name the type of a field: int32, []v1.Container, map[string]string.
std::string GoTypeOf(const FieldInfo& field);
std::string GoTypeOf(const MessageInfo& message);

}  // namespace keelson::api
