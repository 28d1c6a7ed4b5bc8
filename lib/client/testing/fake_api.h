// An in-memory API server for unit tests: create, get, list with selectors and pages, watch with bookmarks,
// update, status, patch, delete (graceful for pods, finalizers, propagation policies), binding, eviction,
// service account tokens, resource version conflicts, generateName. No defaulting, validation, admission or
// authorization. The suite in api_conformance.h compares it with the real one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/meta.h"
#include "lib/base/clock.h"
#include "lib/client/rest.h"
#include "lib/client/transport.h"

namespace keelson::client {

class FakeApi : public Transport {  // thread safe
 public:
  explicit FakeApi(Clock& clock = Clock::Real());
  ~FakeApi() override;

  Result<ApiResponse> Do(const ApiRequest& request, std::chrono::milliseconds timeout,
                         std::stop_token stop) override;
  Result<std::unique_ptr<ApiStream>> Open(const ApiRequest& request, std::stop_token stop) override;

  // ---- setting the scene ----

  // Creates or replaces an object exactly as given, status included.
  template <typename T>
  T Put(const T& object) {
    T stored;
    PutInto(object, stored);
    return stored;
  }
  // Sees every request first; a value it returns is the response. Make an ApiResponse with Answer() or
  // Refuse().
  using Interceptor = std::function<std::optional<Result<ApiResponse>>(const ApiRequest&)>;
  void SetInterceptor(Interceptor interceptor);
  static ApiResponse Answer(const google::protobuf::Message& object, int status = 200);
  static ApiResponse Refuse(const Error& error);
  // Serves a resource beside the built-in ones, in one or more versions, and shows it in discovery, as of a definition
  // with the status subresource. Serving it again replaces the versions, the preferred one first; none: it is gone with
  // its objects, and watches end.
  struct Custom {
    std::string group, resource, kind;
    bool namespaced = true;
    std::vector<std::string> versions;
  };
  void Serve(const Custom& custom);
  // Creates or replaces an object of such a resource. Returns the stored metadata.
  metav1::ObjectMeta PutCustom(std::string_view group, std::string_view resource,
                               const metav1::ObjectMeta& meta);
  // Forgets the log: watches from earlier versions get 410.
  void Compact();
  // Ends all watch streams, like a restarting server.
  void EndWatches();
  void SendBookmarks();

  // ---- observing ----

  // All requests so far, watches included: "POST /api/v1/namespaces/default/pods".
  std::vector<std::string> Requests() const;
  void ForgetRequests();
  // Blocks until `watches` streams are open and a reader of each has received everything and waits for
  // more: every informer has then handled all changes.
  void AwaitIdle(size_t watches);

 private:
  void PutInto(const google::protobuf::Message& object, google::protobuf::Message& stored);
  class Stream;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::client
