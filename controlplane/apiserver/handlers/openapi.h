// /openapi/v2, /openapi/v3 and the documents below it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/request/api_enablement.h"
#include "lib/api/openapi/openapi.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

// Documents have several megabytes. They are created on first use, cached compressed, and dropped when idle.
// Their hashes, which the index of version 3 needs, stay.
class OpenApiHandler {  // thread safe
 public:
  explicit OpenApiHandler(Clock& clock = Clock::Real(), ApiEnablement enablement = {})
      : clock_(clock), served_([enablement = std::move(enablement)](const api::ResourceInfo& info) {
          return enablement.Serves(info);
        }) {}

  // Returns false for other paths.
  bool Handle(Context& context);
  // Drops documents that were not requested recently.
  void DropIdle();
  // The number of cached documents.
  size_t kept() const;

 private:
  struct Document {
    std::string gzip, content_type;
    std::string hash;  // of the contents; equal for both encodings
  };
  using DocumentPtr = std::shared_ptr<const Document>;
  struct Kept {
    DocumentPtr document;
    SteadyTime used;
  };

  DocumentPtr Find(const std::string& key, std::string_view content_type, const std::string& hash,
                   const std::function<std::string()>& make);
  void Reply(Context& context, const Document& document, http::Headers headers) const;
  void HandleV2(Context& context);
  void HandleIndex(Context& context);
  void HandleV3(Context& context, const std::string& path);
  std::string HashOf(const std::string& path);

  Clock& clock_;
  const api::OpenApiFilter served_;
  mutable Mutex mutex_;
  std::map<std::string, Kept> documents_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::string> hashes_
      KEELSON_GUARDED_BY(mutex_);  // hashes of version 3's documents, by path
};

}  // namespace keelson::apiserver
