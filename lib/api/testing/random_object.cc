#include "lib/api/testing/random_object.h"

#include "lib/api/proto/options.pb.h"
#include "lib/api/quantity.h"

namespace keelson::api {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

int Below(std::mt19937& random, int limit) {
  return std::uniform_int_distribution<int>(0, limit - 1)(random);
}

std::string RandomText(std::mt19937& random) {
  static const std::string kTexts[] = {"a",
                                       "web-1",
                                       "x<y>&\"z\\",
                                       "line\nbreak\ttab",
                                       "caf\xc3\xa9 \xe2\x82\xac",
                                       "\xe2\x80\xa8\xe2\x80\xa9",
                                       "\xf0\x9f\x90\xb3",
                                       std::string(300, 'q'),
                                       "\x01\x1f\x7f",
                                       "kubernetes.io/os",
                                       "null",
                                       "{}"};
  return kTexts[Below(random, std::size(kTexts))];
}

int64_t RandomNumber(std::mt19937& random) {
  static constexpr int64_t kNumbers[] = {1, -1, 80, 127, 128, 65535, 2147483647, -2147483648};
  return kNumbers[Below(random, std::size(kNumbers))];
}

JsonForm FormOf(const Descriptor* type) { return type->options().GetExtension(json_form); }
bool IsPointer(const FieldDescriptor* field) { return field->options().GetExtension(form) == POINTER; }

void SetInt(Message& object, std::string_view name, int64_t value) {
  const FieldDescriptor* field = object.GetDescriptor()->FindFieldByName(std::string(name));
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    object.GetReflection()->SetInt32(&object, field, static_cast<int32_t>(value));
  } else {
    object.GetReflection()->SetInt64(&object, field, value);
  }
}
void SetText(Message& object, std::string_view name, std::string value) {
  object.GetReflection()->SetString(&object, object.GetDescriptor()->FindFieldByName(std::string(name)),
                                    std::move(value));
}
Message& Child(Message& object, std::string_view name) {
  return *object.GetReflection()->MutableMessage(&object,
                                                 object.GetDescriptor()->FindFieldByName(std::string(name)));
}

void FillScalar(Message& object, const FieldDescriptor* field, std::mt19937& random) {
  const Reflection& reflection = *object.GetReflection();
  bool add = field->is_repeated(), zero = (add || IsPointer(field)) && Below(random, 3) == 0;
  int64_t number = zero ? 0 : RandomNumber(random);
  std::string text = zero && field->type() != FieldDescriptor::TYPE_BYTES ? "" : RandomText(random);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return add ? reflection.AddString(&object, field, text) : reflection.SetString(&object, field, text);
    case FieldDescriptor::CPPTYPE_BOOL:
      return add ? reflection.AddBool(&object, field, !zero) : reflection.SetBool(&object, field, !zero);
    case FieldDescriptor::CPPTYPE_INT32:
      return add ? reflection.AddInt32(&object, field, static_cast<int32_t>(number))
                 : reflection.SetInt32(&object, field, static_cast<int32_t>(number));
    case FieldDescriptor::CPPTYPE_INT64:
      number = number * 1'000'003;
      return add ? reflection.AddInt64(&object, field, number) : reflection.SetInt64(&object, field, number);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&object, field, zero ? 0 : static_cast<double>(number) / 8 * 1e-7);
    default:
      return;
  }
}

// Fills types whose JSON is not an object. Never leaves a message that reads back as null.
void FillForm(Message& object, std::mt19937& random, int depth) {
  static const std::string kRaw[] = {"{}", "true", "[1,{\"a\":\"b c\"}]", "{\"kind\":\"X\",\"n\":-1.5e3}",
                                     "\"t\""};
  static const char* const kQuantities[] = {"1", "100m", "1500m", "128Mi", "1Gi", "1e3", "5G", "3n", "0"};
  switch (FormOf(object.GetDescriptor())) {
    case JSON_TIME:
      return SetInt(object, "seconds", Below(random, 2'000'000'000) - 1000);
    case JSON_MICRO_TIME:
      SetInt(object, "seconds", Below(random, 2'000'000'000));
      if (Below(random, 2)) SetInt(object, "nanos", (1 + Below(random, 999'998)) * 1000);
      return;
    case JSON_DURATION:
      return SetInt(object, "duration", RandomNumber(random) * 1'000'000);
    case JSON_RAW:
      return SetText(object, "raw", kRaw[Below(random, std::size(kRaw))]);
    case JSON_QUANTITY:
      return SetText(object, "string", kQuantities[Below(random, std::size(kQuantities))]);
    case JSON_INT_OR_STRING:
      if (Below(random, 2)) return SetInt(object, "int_val", RandomNumber(random));
      SetInt(object, "type", 1);
      return SetText(object, "str_val", "http");
    case JSON_LIST:
      return FillScalar(object, object.GetDescriptor()->field(0), random);
    case JSON_SCHEMA_OR_BOOL:
      if (Below(random, 2)) {
        object.GetReflection()->SetBool(&object, object.GetDescriptor()->FindFieldByName("allows"), true);
        if (Below(random, 2)) FillRandom(Child(object, "schema"), random, depth + 1);
      }
      return;
    case JSON_SCHEMA_OR_ARRAY:
    case JSON_SCHEMA_OR_STRINGS:
      if (Below(random, 2)) return FillRandom(Child(object, "schema"), random, depth + 1);
      if (const FieldDescriptor* list = object.GetDescriptor()->field(1); list->message_type()) {
        object.GetReflection()->AddMessage(&object, list);
      } else {
        FillScalar(object, list, random);
      }
      return;
    case JSON_OBJECT:
      return;
  }
}

bool IsZero(const Message& object) {
  if (object.ByteSizeLong() == 0) return true;
  auto* quantity = dynamic_cast<const resource::Quantity*>(&object);
  return quantity && quantity->string() == "0";
}

void FillMap(Message& object, const FieldDescriptor* field, std::mt19937& random, int depth) {
  for (int i = Below(random, 3); i >= 0; --i) {
    Message& entry = *object.GetReflection()->AddMessage(&object, field);
    SetText(entry, "key", "k" + std::to_string(i) + RandomText(random));
    const FieldDescriptor* value = entry.GetDescriptor()->FindFieldByName("value");
    if (value->message_type()) {
      FillRandom(*entry.GetReflection()->MutableMessage(&entry, value), random, depth + 1);
    } else {
      FillScalar(entry, value, random);
    }
  }
}

}  // namespace

void FillRandom(Message& object, std::mt19937& random, int depth) {
  const Descriptor* type = object.GetDescriptor();
  if (FormOf(type) != JSON_OBJECT) return FillForm(object, random, depth);
  const Reflection& reflection = *object.GetReflection();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (Below(random, 2 + depth) != 0 || depth > 12) continue;
    if (field->is_map()) {
      FillMap(object, field, random, depth);
    } else if (!field->message_type()) {
      for (int n = field->is_repeated() ? Below(random, 3) : 0; n >= 0; --n) {
        FillScalar(object, field, random);
      }
    } else if (field->is_repeated()) {
      for (int n = Below(random, 2); n >= 0; --n) {
        FillRandom(*reflection.AddMessage(&object, field), random, depth + 1);
      }
    } else {
      Message& child = *reflection.MutableMessage(&object, field);
      FillRandom(child, random, depth + 1);
      if (!IsPointer(field) && IsZero(child)) reflection.ClearField(&object, field);
    }
  }
}

void AddValueZeros(Message& object) {
  const Descriptor* type = object.GetDescriptor();
  const Reflection& reflection = *object.GetReflection();
  if (FormOf(type) == JSON_TIME || FormOf(type) == JSON_MICRO_TIME) return;  // presence has a meaning
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->is_map()) continue;
    if (field->is_repeated()) {
      if (!field->message_type()) continue;
      for (int n = 0; n < reflection.FieldSize(object, field); ++n) {
        AddValueZeros(*reflection.MutableRepeatedMessage(&object, field, n));
      }
      continue;
    }
    if (field->message_type()) {
      bool recursive = field->message_type()->name().rfind("JSONSchemaProps", 0) == 0;
      if (reflection.HasField(object, field) || (!IsPointer(field) && !recursive)) {
        AddValueZeros(*reflection.MutableMessage(&object, field));
      }
      continue;
    }
    if (IsPointer(field) || reflection.HasField(object, field)) continue;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        reflection.SetString(&object, field, "");
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection.SetBool(&object, field, false);
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection.SetInt32(&object, field, 0);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection.SetInt64(&object, field, 0);
        break;
      default:
        break;
    }
  }
}

}  // namespace keelson::api
