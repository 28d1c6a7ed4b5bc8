#include "cni/agent/resources/resource_source.h"

#include <random>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/percent.h"
#include "lib/client/watch.h"
#include "lib/client/wire.h"
#include "lib/http/message.h"

namespace keelson::cni::agent {
namespace {

constexpr int kPage = 100;  // objects are large, Nodes mostly because of their list of images
constexpr std::chrono::seconds kTimeout{30};

// Field numbers of lists and ListMeta.
constexpr int kListMeta = 1, kItems = 2, kResourceVersion = 2, kContinue = 3;

Error ErrorOf(const client::ApiResponse& response) {
  Result<api::Envelope> envelope = api::OpenEnvelope(response.body);
  metav1::Status status;
  if (envelope && envelope->type_meta.kind == "Status" && api::DecodeRaw(envelope->raw, status)) {
    return api::FromStatus(status);
  }
  return Error(CodeOf(response.status, ""),
               "the server answered with status " + std::to_string(response.status));
}

// Servers end a watch after a while anyway. Randomised, so that agents do not reconnect all at once.
int WatchSeconds() {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_int_distribution<int>(300, 600)(random);
}

}  // namespace

Result<std::string> ResourceSource::Exchange(const client::ApiRequest& request, std::stop_token stop) const {
  KEELSON_ASSIGN_OR_RETURN(client::ApiResponse response, transport_->Do(request, kTimeout, std::move(stop)));
  if (response.status < 200 || response.status > 299) return ErrorOf(response);
  return std::move(response.body);
}

Result<std::string> ResourceSource::List(const std::function<Result<>(std::string_view raw)>& each,
                                         std::stop_token stop) const {
  std::string version, next;
  do {
    client::ApiRequest request;
    request.target = path_ + "?limit=" + std::to_string(kPage);
    if (!next.empty()) request.target += "&continue=" + PercentEncode(next);
    next.clear();
    KEELSON_ASSIGN_OR_RETURN(std::string body, Exchange(request, stop));
    KEELSON_ASSIGN_OR_RETURN(api::Envelope envelope, api::OpenEnvelope(body));
    KEELSON_RETURN_IF_ERROR(
        client::ForEachField(envelope.raw, [&](int number, std::string_view payload) -> Result<> {
          if (number == kItems) return each(payload);
          if (number != kListMeta) return {};
          return client::ForEachField(payload, [&](int field, std::string_view text) -> Result<> {
            if (field == kResourceVersion) version = text;
            if (field == kContinue) next = text;
            return {};
          });
        }));
  } while (!next.empty());
  return version;
}

Result<std::unique_ptr<client::WatchStream>> ResourceSource::Watch(const std::string& resource_version,
                                                                   std::stop_token stop) const {
  client::ApiRequest request;
  request.target = path_ +
                   "?watch=true&allowWatchBookmarks=true&resourceVersion=" + PercentEncode(resource_version) +
                   "&timeoutSeconds=" + std::to_string(WatchSeconds());
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<client::ApiStream> stream, transport_->Open(request, stop));
  return client::NewWatchStream(std::move(stream), stop);
}

}  // namespace keelson::cni::agent
