// A stored object and a change to it, in the API server's memory. Both are immutable and shared by all readers;
// encoded forms are made once, on first use.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/api/selector.h"
#include "lib/base/error.h"

namespace keelson::storage {

class Object;
using ObjectPtr = std::shared_ptr<const Object>;
using Bytes = std::shared_ptr<const std::string>;

// One object at one revision, in one group and version. Thread safe.
class Object : public std::enable_shared_from_this<Object> {
 public:
  // From an etcd value: an envelope around bytes without resourceVersion, or the object's JSON. `key` is
  // "namespace/name", or "name" for cluster-scoped resources. Values that are not `info`'s kind are an error.
  static Result<ObjectPtr> FromStored(const api::ResourceInfo& info, std::string key, int64_t revision,
                                      std::string_view value);
  // From a message; its resourceVersion is set to `revision` (0: none, for objects that are not stored).
  static ObjectPtr FromMessage(const api::ResourceInfo& info, const api::Message& message, int64_t revision);
  // The answer to a dry run of a create: resourceVersion is the client's, revision() is 0.
  static ObjectPtr Unstored(const api::ResourceInfo& info, const api::Message& message);
  // The same object under another revision, for a deletion.
  ObjectPtr WithRevision(int64_t revision) const;
  // The same object in another group and version that shares its storage. Not for versions that a webhook converts
  // (ConvertAll() in convert.h).
  ObjectPtr In(const api::ResourceInfo& info) const;
  // The same object as `converted`, which is of `info`'s version.
  ObjectPtr As(const api::ResourceInfo& info, const api::Message& converted) const;

  const api::ResourceInfo& info() const { return *info_; }  // of a main resource, or a subresource (Scale)
  const std::string& key() const { return key_; }
  std::string_view ns() const;  // empty for cluster-scoped
  std::string_view name() const;
  int64_t revision() const { return revision_; }
  bool stored_as_json() const { return stored_as_json_; }
  // The row of the version that etcd has, where it is known; null otherwise.
  const api::ResourceInfo* stored_as() const { return stored_as_; }

  // application/vnd.kubernetes.protobuf, and the object's bytes inside; both with resourceVersion.
  std::string_view Protobuf() const { return bytes_; }
  std::string_view raw() const { return std::string_view(bytes_).substr(raw_offset_, raw_size_); }
  // As an item of a list: without kind and apiVersion, which the list has, and without a newline; items of custom
  // resources have both. Kept for later readers; DropIdle() frees what had no recent reader.
  Bytes Json() const;
  Bytes JsonIfKnown() const;  // null unless Json() was called before
  // As an object of its own: `text` with kind and apiVersion, appended to `out`.
  void AppendTyped(std::string_view text, std::string& out) const;
  std::string TypedJson() const;
  // Decoded on demand and shared while a reader holds it. Never null: the constructor checks the bytes.
  std::shared_ptr<const api::Message> Decode() const;
  // One more encoded form, of the caller's choice (table row cells). All callers use the same function for all
  // objects of a kind.
  Bytes Cached(const std::function<std::string(const Object&)>& make) const;

  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;  // sorted, into the bytes
  const Labels& labels() const { return labels_; }
  bool Matches(const api::LabelSelector& labels, const api::FieldSelector& fields) const;
  size_t MemorySize() const;
  // Frees encoded forms that were not used since the last call.
  void DropIdle() const;

  // Use the makers above.
  Object(const api::ResourceInfo& info, std::string key, int64_t revision);

 private:
  static Result<std::shared_ptr<Object>> Make(const api::ResourceInfo& info, std::string key,
                                              std::optional<int64_t> revision, std::string_view raw);
  static Result<ObjectPtr> FromStoredCustom(const api::ResourceInfo& info, std::string key, int64_t revision,
                                            std::string_view value);
  static std::shared_ptr<Object> Encode(const api::ResourceInfo& info, const api::Message& message,
                                        std::optional<int64_t> revision);
  void SetFields(const api::Message& message);
  std::string_view Field(std::string_view name, bool& known) const;

  const api::ResourceInfo* info_;
  std::string key_;
  int64_t revision_;
  bool stored_as_json_ = false;
  const api::ResourceInfo* stored_as_ = nullptr;
  std::string bytes_;
  uint32_t raw_offset_ = 0, raw_size_ = 0;
  Labels labels_;
  std::string fields_;  // values of SelectableFields() but metadata.*, each ended by a zero byte
  mutable std::atomic<std::shared_ptr<const std::string>> json_, cached_;
  mutable std::atomic<bool> json_used_{false};
  mutable std::atomic<std::weak_ptr<const api::Message>> decoded_;
};

enum class Format { kJson, kProtobuf };

class Event;
using EventPtr = std::shared_ptr<const Event>;

// One change from a watcher's view. Shared by all watchers with the same view.
class Event {
 public:
  enum class Type { kAdded, kModified, kDeleted, kBookmark };

  Event(Type type, ObjectPtr object, int64_t revision);
  // Progress only. `initial_events_end` adds the annotation k8s.io/initial-events-end.
  static EventPtr Bookmark(const api::ResourceInfo& info, int64_t revision, bool initial_events_end);

  Type type() const { return type_; }
  std::string_view TypeName() const;                   // ADDED, MODIFIED, DELETED, BOOKMARK
  const ObjectPtr& object() const { return object_; }  // a bookmark's holds only metadata
  int64_t revision() const { return revision_; }
  // Ready for the socket: a JSON line, or a length-prefixed protobuf WatchEvent. Made once.
  Bytes Frame(Format format) const;

 private:
  const Type type_;
  const ObjectPtr object_;
  const int64_t revision_;
  mutable std::atomic<std::shared_ptr<const std::string>> frames_[2];
};

// The same for frames that are not an object's own (tables, partial metadata): `object_json` is any JSON
// value, `object_protobuf` an envelope.
std::string JsonFrame(std::string_view type, std::string_view object_json);
std::string ProtobufFrame(std::string_view type, std::string_view object_protobuf);

// Receives the events of a watch, in order. Storage threads, or Watch() itself, make one call at a time; calls must
// not block.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // Returns false when the reader is too slow or gone: then no more calls follow, not even OnEnd.
  virtual bool OnEvent(const EventPtr& event) = 0;
  // The watch has ended: kGone (its place in history is lost; clients list again), kUnavailable, or kCancelled (there is
  // nothing left to watch).
  virtual void OnEnd(const Error& error) = 0;
};

// The destructor ends the watch and waits for a running call; no call follows. Do not destroy it inside OnEvent or
// OnEnd.
class WatchHandle {
 public:
  virtual ~WatchHandle() = default;
  // A bookmark with the current revision, once the watcher may see it.
  virtual void RequestBookmark() = 0;
};

}  // namespace keelson::storage
