// An API server in memory, for unit tests of everything that talks to one: create, get, list with selectors
// and pages, watch with bookmarks, update, status, patch, delete (graceful for pods, finalizers, propagation
// policies), binding, eviction, service account tokens, resource version conflicts, generateName. No
// defaulting, validation, admission or authorization. tests: api_conformance.h holds it to what the real one
// does.
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

  // Stores an object as it stands, status included, created or replaced.
  template <typename T>
  T Put(const T& object) {
    T stored;
    PutInto(object, stored);
    return stored;
  }
  // Sees every request first; what it returns is the answer. An ApiResponse comes from Answer() and Refuse().
  using Interceptor = std::function<std::optional<Result<ApiResponse>>(const ApiRequest&)>;
  void SetInterceptor(Interceptor interceptor);
  static ApiResponse Answer(const google::protobuf::Message& object, int status = 200);
  static ApiResponse Refuse(const Error& error);
  // Watches from before now get 410.
  void Compact();
  // Ends all watch streams, as a server that restarts does.
  void EndWatches();
  void SendBookmarks();

  // ---- looking on ----

  // "POST /api/v1/namespaces/default/pods", in order, watches included.
  std::vector<std::string> Requests() const;
  void ForgetRequests();
  // Blocks until `watches` streams are open and each has been read empty by a reader that waits for more:
  // then every informer has handled all that has happened.
  void AwaitIdle(size_t watches);

 private:
  void PutInto(const google::protobuf::Message& object, google::protobuf::Message& stored);
  class Stream;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace keelson::client
