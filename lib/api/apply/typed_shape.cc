// Shapes from descriptors.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>

#include "lib/api/apply/typed.h"
#include "lib/api/type_table.h"
#include "lib/base/log.h"

namespace keelson::api {
namespace {

constexpr Shape::Scalar ScalarOf(ValueKind kind) {
  switch (kind) {
    case ValueKind::kString:
    case ValueKind::kBytes:
      return Shape::Scalar::kString;
    case ValueKind::kBool:
      return Shape::Scalar::kBool;
    default:
      return Shape::Scalar::kNumber;
  }
}

class Builder {
 public:
  const Shape& Get(const Descriptor* descriptor) {
    const MessageInfo& info = InfoOf(descriptor);
    std::lock_guard lock(mutex_);
    return *OfMessage(info, descriptor->options().GetExtension(atomic));
  }

 private:
  // One per message type and atomicity: a field may override what its type says.
  const Shape* OfMessage(const MessageInfo& info, bool is_atomic) {
    switch (info.form) {
      case JSON_OBJECT:
        break;
      case JSON_TIME:
      case JSON_MICRO_TIME:
      case JSON_QUANTITY:
      case JSON_INT_OR_STRING:
        return Scalar(Shape::Scalar::kAny);
      case JSON_DURATION:
        return Scalar(Shape::Scalar::kString);
      case JSON_LIST:
        return AtomicList(Element(info.fields.front()));
      default:
        return &any_;
    }
    auto [it, added] = messages_.try_emplace({&info, is_atomic});
    Shape& shape = it->second;
    if (!added) return &shape;
    shape.kind = Shape::Kind::kMap;
    shape.atomic = is_atomic;
    AddGroup(shape, info, -1, -1);
    if (info.has_type_meta) {
      shape.fields.push_back({"apiVersion", Scalar(Shape::Scalar::kString)});
      shape.fields.push_back({"kind", Scalar(Shape::Scalar::kString)});
    }
    std::sort(shape.fields.begin(), shape.fields.end(),
              [](const Shape::Field& a, const Shape::Field& b) { return a.name < b.name; });
    return &shape;
  }

  void AddGroup(Shape& shape, const MessageInfo& info, int parent, int place) {
    const int group = static_cast<int>(shape.groups.size());
    if (shape.groups.size() == Shape::kMaxGroups) {
      log::Error("Message type inlines too much", {{"type", info.descriptor->full_name()}});
      std::abort();
    }
    shape.groups.push_back({&info, parent, place});
    for (size_t i = 0; i < info.fields.size(); ++i) {
      const FieldInfo& field = info.fields[i];
      if (field.rest) {
        shape.element = &any_;
      } else if (field.inlined) {
        AddGroup(shape, *field.message, group, static_cast<int>(i));
      } else {
        shape.fields.push_back({field.json_name, OfField(field), group, static_cast<int>(i)});
      }
    }
  }

  const Shape* OfField(const FieldInfo& field) {
    const auto& options = field.descriptor->options();
    ListType type = options.GetExtension(list_type);
    if (field.map) {
      Shape& shape = owned_.emplace_back();
      shape.kind = Shape::Kind::kMap;
      shape.atomic = type == MAP_ATOMIC;
      shape.element = Element(field);
      return &shape;
    }
    if (field.repeated) return OfList(field, type);
    if (field.kind != ValueKind::kMessage) return Scalar(ScalarOf(field.kind));
    bool is_atomic = field.message->descriptor->options().GetExtension(atomic);
    if (type == MAP_ATOMIC || type == LIST_ATOMIC) is_atomic = true;
    if (type == MAP_GRANULAR) is_atomic = false;
    return OfMessage(*field.message, is_atomic);
  }

  const Shape* OfList(const FieldInfo& field, ListType type) {
    if (type != LIST_MAP && type != LIST_SET) return AtomicList(Element(field));
    Shape& shape = owned_.emplace_back();
    shape.kind = Shape::Kind::kList;
    shape.set = type == LIST_SET;
    shape.element = Element(field);
    if (shape.set) return &shape;
    const auto& options = field.descriptor->options();
    for (int i = 0; i < options.ExtensionSize(list_map_key); ++i) {
      int index = field.message->LookUp(options.GetExtension(list_map_key, i));
      const FieldInfo& key = *field.message->keys[static_cast<size_t>(index)].field;
      shape.keys.push_back({key.json_name, KeyDefault(key)});
    }
    std::sort(shape.keys.begin(), shape.keys.end(),
              [](const Shape::Key& a, const Shape::Key& b) { return a.name < b.name; });
    return &shape;
  }

  // In the OpenAPI that upstream merges by, fields that Go always prints default to their zero value; so
  // does the name of a reference.
  static std::string KeyDefault(const FieldInfo& key) {
    const std::string& stated = key.descriptor->options().GetExtension(api::default_json);
    if (!stated.empty()) return stated;
    bool is_reference = key.descriptor->containing_type()->name() == "LocalObjectReference";
    if (key.pointer || !(key.always || is_reference)) return "";
    return key.kind == ValueKind::kString ? "\"\"" : key.kind == ValueKind::kBool ? "false" : "0";
  }

  const Shape* AtomicList(const Shape* element) {
    Shape& shape = owned_.emplace_back();
    shape.kind = Shape::Kind::kList;
    shape.atomic = true;
    shape.element = element;
    return &shape;
  }

  // The shape of a list's items or a map's values.
  const Shape* Element(const FieldInfo& field) {
    if (field.kind != ValueKind::kMessage) return Scalar(ScalarOf(field.kind));
    return OfMessage(*field.message, field.message->descriptor->options().GetExtension(atomic));
  }

  const Shape* Scalar(Shape::Scalar scalar) {
    Shape& shape = scalars_[static_cast<size_t>(scalar)];
    shape.kind = Shape::Kind::kScalar;
    shape.scalar = scalar;
    return &shape;
  }

  std::mutex mutex_;
  std::map<std::pair<const MessageInfo*, bool>, Shape> messages_;
  std::deque<Shape> owned_;
  Shape scalars_[4];
  Shape any_;
};

}  // namespace

const Shape::Field* Shape::Find(std::string_view name) const {
  auto at = std::lower_bound(fields.begin(), fields.end(), name,
                             [](const Field& field, std::string_view value) { return field.name < value; });
  return at != fields.end() && at->name == name ? &*at : nullptr;
}

const Shape& ShapeOf(const Descriptor* descriptor) {
  static auto* builder = new Builder;
  return builder->Get(descriptor);
}

void Comparison::Filter(const FieldFilter& filter) {
  if (filter.IsEverything()) return;
  filter.Apply(added);
  filter.Apply(modified);
  filter.Apply(removed);
}

}  // namespace keelson::api
