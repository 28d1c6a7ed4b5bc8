// Typed access to a Kubernetes API over protobuf. Thread safe; copies share the transport.
//
// `ns` is empty for cluster-scoped kinds. Errors have the code of the server's Status (kNotFound,
// kAlreadyExists, kConflict, kInvalid, ...); kUnavailable, kTimeout and kCancelled come from the transport.
//
//   RestClient api(transport);
//   KEELSON_ASSIGN_OR_RETURN(corev1::Pod pod, api.Get<corev1::Pod>("default", "web-1"));
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/client/transport.h"

namespace keelson::client {

struct ListOptions {
  std::string label_selector, field_selector;
  std::string resource_version;  // "" consistent, "0" any
  std::string resource_version_match;
  int64_t limit = 0;  // page size; the client fetches all pages
  std::string continue_token;
  // Request only `metadata`, from servers that can send PartialObjectMetadata (whose wire form is a part of
  // every kind's). Other servers send whole objects; items in JSON become PartialObjectMetadata.
  bool metadata_only = false;
};

struct DeleteOptions {
  std::optional<int64_t> grace_period_seconds;
  std::string propagation_policy;     // Background, Foreground, Orphan; empty: the kind's default
  std::string uid, resource_version;  // preconditions; empty: none
};

enum class PatchType { kJson, kMerge, kStrategicMerge };

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark };
  Type type;
  std::string raw;  // the object's protobuf bytes, without envelope
};

class WatchStream {
 public:
  virtual ~WatchStream() = default;
  // Blocks for the next event. An ERROR event is an error with the code of its Status (kGone: list again).
  // kUnavailable: the stream has ended; watch again from the last resource version.
  virtual Result<WatchEvent> Next(std::stop_token stop) = 0;
};

class RestClient {
 public:
  explicit RestClient(std::shared_ptr<Transport> transport,
                      std::chrono::milliseconds timeout = std::chrono::seconds(30));
  // A copy whose calls end with kCancelled when `stop` is requested.
  RestClient With(std::stop_token stop) const;

  template <typename T>
  Result<T> Get(std::string_view ns, std::string_view name) const {
    T object;
    KEELSON_RETURN_IF_ERROR(GetInto(api::ResourceOf<T>(), ns, name, object));
    return object;
  }
  // Creates the object in the namespace from its metadata, and returns it as stored.
  template <typename T>
  Result<T> Create(const T& object) const {
    T stored;
    KEELSON_RETURN_IF_ERROR(Write("POST", object, "", stored));
    return stored;
  }
  template <typename T>
  Result<T> Update(const T& object, std::string_view subresource = "") const {
    T stored;
    KEELSON_RETURN_IF_ERROR(Write("PUT", object, subresource, stored));
    return stored;
  }
  template <typename T>
  Result<T> UpdateStatus(const T& object) const {
    return Update(object, "status");
  }
  template <typename T>
  Result<T> Patch(std::string_view ns, std::string_view name, PatchType type, std::string body,
                  std::string_view subresource = "") const {
    T stored;
    KEELSON_RETURN_IF_ERROR(
        PatchInto(api::ResourceOf<T>(), ns, name, subresource, type, std::move(body), stored));
    return stored;
  }
  template <typename T>
  Result<> Delete(std::string_view ns, std::string_view name, const DeleteOptions& options = {}) const {
    return DeleteObject(api::ResourceOf<T>(), ns, name, options);
  }
  template <typename T>
  Result<std::vector<T>> List(std::string_view ns = "", const ListOptions& options = {}) const {
    std::vector<T> items;
    KEELSON_RETURN_IF_ERROR(
        ListEach(api::ResourceOf<T>(), ns, options, nullptr, [&](std::string_view raw) -> Result<> {
          T item;
          KEELSON_RETURN_IF_ERROR(DecodeInto(raw, item));
          items.push_back(std::move(item));
          return {};
        }));
    return items;
  }

  // Create() also sends kinds that are not stored: SubjectAccessReview, TokenReview.

  // ---- untyped: the base of the templates and the reflector ----
  Result<> GetInto(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                   google::protobuf::Message& out) const;
  Result<> Write(std::string_view method, const google::protobuf::Message& object,
                 std::string_view subresource, google::protobuf::Message& out) const;
  // POSTs another kind to a subresource: Binding, TokenRequest, Eviction. `out` may be null.
  Result<> CreateSub(const api::ResourceInfo& parent, std::string_view ns, std::string_view name,
                     std::string_view subresource, const google::protobuf::Message& body,
                     google::protobuf::Message* out) const;
  Result<> PatchInto(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                     std::string_view subresource, PatchType type, std::string body,
                     google::protobuf::Message& out) const;
  Result<> DeleteObject(const api::ResourceInfo& info, std::string_view ns, std::string_view name,
                        const DeleteOptions& options) const;
  // Calls `each` with the wire bytes of every item; `resource_version` (may be null) gets the list's
  // version.
  Result<> ListEach(const api::ResourceInfo& info, std::string_view ns, const ListOptions& options,
                    std::string* resource_version,
                    const std::function<Result<>(std::string_view raw)>& each) const;
  // Watches from `options.resource_version` on. Requests bookmarks.
  Result<std::unique_ptr<WatchStream>> Watch(const api::ResourceInfo& info, std::string_view ns,
                                             const ListOptions& options) const;
  static Result<> DecodeInto(std::string_view raw, google::protobuf::Message& out);

  Transport& transport() const { return *transport_; }

 private:
  std::shared_ptr<Transport> transport_;
  std::chrono::milliseconds timeout_;
  std::stop_token stop_;
};

// Reads the object, lets `change` edit it, and writes it; repeats on a conflict, up to 5 times in all.
// `change` returns false when there is nothing to do.
template <typename T>
Result<T> UpdateWithRetry(const RestClient& api, std::string_view ns, std::string_view name,
                          std::string_view subresource, const std::function<Result<bool>(T&)>& change) {
  for (int attempt = 0;; ++attempt) {
    KEELSON_ASSIGN_OR_RETURN(T object, api.Get<T>(ns, name));
    KEELSON_ASSIGN_OR_RETURN(bool changed, change(object));
    if (!changed) return object;
    Result<T> stored = api.Update(object, subresource);
    if (stored || !stored.error().Is(Code::kConflict) || attempt == 4) return stored;
  }
}

}  // namespace keelson::client
