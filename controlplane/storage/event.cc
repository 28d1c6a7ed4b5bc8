#include <cstdlib>

#include "controlplane/storage/object.h"
#include "controlplane/storage/wire.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::storage {

Event::Event(Type type, ObjectPtr object, int64_t revision)
    : type_(type), object_(std::move(object)), revision_(revision) {}

EventPtr Event::Bookmark(const api::ResourceInfo& info, int64_t revision, bool initial_events_end) {
  std::unique_ptr<api::Message> message = api::NewObject(info.descriptor());
  metav1::ObjectMeta& meta = api::MutableMeta(*message);
  if (initial_events_end) (*meta.mutable_annotations())["k8s.io/initial-events-end"] = "true";
  return std::make_shared<Event>(Type::kBookmark, Object::FromMessage(info, *message, revision), revision);
}

std::string_view Event::TypeName() const {
  switch (type_) {
    case Type::kAdded:
      return "ADDED";
    case Type::kModified:
      return "MODIFIED";
    case Type::kDeleted:
      return "DELETED";
    case Type::kBookmark:
      return "BOOKMARK";
  }
  std::abort();
}

Bytes Event::Frame(Format format) const {
  auto& slot = frames_[static_cast<size_t>(format)];
  if (Bytes known = slot.load()) return known;
  std::string frame;
  if (format == Format::kProtobuf) {
    frame = ProtobufFrame(TypeName(), object_->Protobuf());
  } else {
    std::string text;
    if (Bytes json = object_->JsonIfKnown()) {
      object_->AppendTyped(*json, text);
    } else {
      // Not left behind in the object: most objects that change are never listed as they are now.
      api::GroupVersionKind gvk = object_->info().Gvk();
      api::WireToJson(object_->info().descriptor(), object_->raw(), &gvk, text);
    }
    frame = JsonFrame(TypeName(), text);
  }
  auto made = std::make_shared<const std::string>(std::move(frame));
  slot.store(made);
  return made;
}

std::string JsonFrame(std::string_view type, std::string_view object_json) {
  std::string frame;
  frame.reserve(object_json.size() + 40);
  frame += R"({"type":")";
  frame += type;
  frame += R"(","object":)";
  frame += object_json;
  frame += "}\n";
  return frame;
}

std::string ProtobufFrame(std::string_view type, std::string_view object_protobuf) {
  // WatchEvent{type, object RawExtension{raw}} behind four bytes of length, most significant first.
  std::string extension, frame(4, '\0');
  extension.reserve(object_protobuf.size() + 6);
  AppendBytes(1, object_protobuf, extension);
  frame.reserve(extension.size() + 32);
  AppendBytes(1, type, frame);
  AppendBytes(2, extension, frame);
  auto size = static_cast<uint32_t>(frame.size() - 4);
  for (int i = 3; i >= 0; --i, size >>= 8) frame[static_cast<size_t>(i)] = static_cast<char>(size & 0xff);
  return frame;
}

}  // namespace keelson::storage
