// Informers as in client-go: a reflector lists and watches a type into a store; handlers only enqueue keys.
//
//   InformerFactory informers(api);
//   auto& pods = informers.Get<corev1::Pod>({.field_selector = "spec.nodeName=n1"});
//   pods.AddIndex("node", [](const corev1::Pod& p) { return std::vector{p.spec().node_name()}; });
//   pods.AddHandler([&](const Change<corev1::Pod>& c) { queue.Add(c.key); });
//   group.Add({"informers", {}, [&](auto stop, auto ready) { return informers.Run(stop, ready); }});
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::client {

// The untyped part. Stores keep wire bytes; objects are decoded on demand and shared while anyone holds
// them. Thread safe.
class InformerBase {
 public:
  using Object = std::shared_ptr<const google::protobuf::Message>;
  struct RawChange {
    std::string key;
    Object old_object;  // null: added
    Object new_object;  // null: deleted
  };
  using IndexFunction = std::function<std::vector<std::string>(const google::protobuf::Message&)>;

  InformerBase(RestClient api, const api::ResourceInfo& info, ListOptions options, std::string ns,
               Clock& clock = Clock::Real());
  virtual ~InformerBase();

  // Add handlers and indexes before Run(). An index with an existing name is ignored.
  void AddRawHandler(std::function<void(const RawChange&)> handler);
  void AddRawIndex(std::string name, IndexFunction function);
  // Keeps only keys and versions, for users that store what they need themselves; applies to everyone who
  // shares the informer. Handlers still learn what is new, changed or gone, but get no old objects: both
  // are null for a deletion that the watch missed. The getters below find nothing.
  void KeepNoObjects();
  Object RawGet(std::string_view key) const;  // null when absent
  std::vector<Object> RawList() const;
  std::vector<Object> RawByIndex(std::string_view index, std::string_view value) const;
  std::vector<std::string> Keys() const;
  size_t size() const;
  bool synced() const;  // all handlers have received the first list
  // Lists and watches until `stop`, with back-off on errors. Calls `on_synced` once.
  void Run(std::stop_token stop, const std::function<void()>& on_synced);
  const api::ResourceInfo& info() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <typename T>
struct Change {
  std::string key;
  std::shared_ptr<const T> old_object;  // null: added
  std::shared_ptr<const T> new_object;  // null: deleted
  const T& object() const { return new_object ? *new_object : *old_object; }
};

// Handlers run one after another on the informer's thread and must not block.
template <typename T>
class Informer : public InformerBase {
 public:
  using InformerBase::InformerBase;
  void AddHandler(std::function<void(const Change<T>&)> handler) {
    AddRawHandler([handler = std::move(handler)](const RawChange& raw) {
      handler(Change<T>{raw.key, Cast(raw.old_object), Cast(raw.new_object)});
    });
  }
  void AddIndex(std::string name, std::function<std::vector<std::string>(const T&)> function) {
    AddRawIndex(std::move(name), [function = std::move(function)](const google::protobuf::Message& m) {
      return function(static_cast<const T&>(m));
    });
  }
  std::shared_ptr<const T> Get(std::string_view key) const { return Cast(RawGet(key)); }
  std::shared_ptr<const T> Get(std::string_view ns, std::string_view name) const {
    return Get(ns.empty() ? std::string(name) : std::string(ns) + "/" + std::string(name));
  }
  std::vector<std::shared_ptr<const T>> List() const { return CastAll(RawList()); }
  std::vector<std::shared_ptr<const T>> ByIndex(std::string_view index, std::string_view value) const {
    return CastAll(RawByIndex(index, value));
  }

 private:
  static std::shared_ptr<const T> Cast(const Object& object) {
    return std::static_pointer_cast<const T>(object);
  }
  static std::vector<std::shared_ptr<const T>> CastAll(const std::vector<Object>& objects) {
    std::vector<std::shared_ptr<const T>> out;
    out.reserve(objects.size());
    for (const Object& object : objects) out.push_back(Cast(object));
    return out;
  }
};

// One informer per type and selection, shared by all users. Call Get() before Run().
class InformerFactory {
 public:
  explicit InformerFactory(RestClient api, Clock& clock = Clock::Real());
  ~InformerFactory();
  template <typename T>
  Informer<T>& Get(const ListOptions& selection = {}, std::string ns = "") {
    return static_cast<Informer<T>&>(Find(api::ResourceOf<T>(), selection, ns, [&] {
      return std::make_unique<Informer<T>>(api_, api::ResourceOf<T>(), selection, ns, clock_);
    }));
  }
  // An informer for any kind that only has metadata: objects are metav1::PartialObjectMetadata and take
  // little memory. For controllers that watch every kind (garbage collector, namespaces).
  Informer<metav1::PartialObjectMetadata>& GetMetadata(const api::ResourceInfo& info);
  size_t size() const;  // number of informers
  // Runs every informer in its own thread until `stop`; calls `ready` once all have synced.
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  InformerBase& Find(const api::ResourceInfo& info, const ListOptions& selection, const std::string& ns,
                     const std::function<std::unique_ptr<InformerBase>()>& make);
  RestClient api_;
  Clock& clock_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::client
